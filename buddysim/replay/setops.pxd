"""The innermost loops (`setops.h`): over the ways of a set."""
from libc.stdint cimport int32_t, uint32_t

cdef extern from "setops.h" nogil:
    const uint32_t SET_EMPTY
    int set_match(const uint32_t* tags, int padded_ways, uint32_t tag) noexcept
    int set_oldest(const int32_t* stamps, int padded_ways) noexcept
