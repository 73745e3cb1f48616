"""The innermost loops (`setops.h`): over the ways of a set."""
from libc.stdint cimport int16_t, uint32_t

cdef extern from "setops.h" nogil:
    const uint32_t SET_EMPTY
    const int16_t STAMP_NEVER
    int set_match(const uint32_t* tags, int padded_ways, uint32_t tag) noexcept
    int set_oldest(const int16_t* stamps, int padded_ways) noexcept
