"""The innermost loops (`setops.h`): over the ways of a set; and what a way holds."""
from libc.stdint cimport int16_t, uint8_t, uint32_t

cdef extern from "setops.h" nogil:
    ctypedef struct Line:       # four bits each
        uint8_t valid
        uint8_t dirty
        uint8_t partial
        uint8_t coming          # valid sectors that are there only from `ready_ps` on
    const uint32_t SET_EMPTY
    const int16_t STAMP_NEVER
    int set_match(const uint32_t* tags, int padded_ways, uint32_t tag) noexcept
    int set_oldest(const int16_t* stamps, int padded_ways) noexcept
