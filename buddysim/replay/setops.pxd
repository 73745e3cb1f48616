"""The innermost loops (`setops.h`): over the ways of a set."""
from libc.stdint cimport int16_t, int64_t, uint8_t, uint32_t

cdef extern from "setops.h" nogil:
    const uint32_t SET_EMPTY
    const int16_t STAMP_NEVER
    const uint8_t[16] SECTOR_COUNT
    int64_t set_match(const uint32_t* tags, int padded_ways, uint32_t tag) noexcept
    int64_t set_oldest(const int16_t* stamps, int padded_ways) noexcept
