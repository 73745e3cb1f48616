"""The innermost loops (`setops.h`): over the ways of a set, over the warps of a scheduler."""
from libc.stdint cimport int32_t, uint32_t, uint64_t

cdef extern from "setops.h" nogil:
    const uint32_t SET_EMPTY
    const double SCHED_NEVER
    int set_match(const uint32_t* tags, int padded_ways, uint32_t tag) noexcept
    int set_oldest(const int32_t* stamps, int padded_ways) noexcept
    uint64_t times_until(const double* times, int padded, double now) noexcept
