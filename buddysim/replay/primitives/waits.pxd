"""Waits of requests, counted by queue; transfers through ports whose waits are counted."""
from libc.stdint cimport int64_t

from buddysim.replay.primitives.compiler_hints cimport unlikely
from buddysim.replay.primitives.extremes cimport max_i64
from buddysim.replay.primitives.horizon cimport Horizon
from buddysim.replay.primitives.kinds cimport HISTOGRAM_BINS, Queue
from buddysim.replay.primitives.port cimport Port, port_try_reserve

cdef extern from *:
    int leading_zeros "__builtin_clzll"(unsigned long long x) noexcept nogil

# What all parts share as requests wait.
cdef struct Waits:
    int64_t* bins     # [QUEUES][HISTOGRAM_BINS], without zero waits of some queues; NULL: not counted
    Horizon* horizon  # the run's


cdef int64_t port_wait_counted(const Waits* waits, Queue queue, Port* port, int64_t bucket, int64_t t,
                               int64_t cost) noexcept nogil


cdef inline void histogram_add(int64_t* bins, int64_t ps) noexcept nogil:
    bins[HISTOGRAM_BINS - 1 - leading_zeros(<unsigned long long>ps | 1)] += 1


cdef inline void count_wait(const Waits* waits, Queue queue, int64_t ps) noexcept nogil:
    """Counts a wait of a request."""
    if unlikely(waits.bins != NULL):
        histogram_add(waits.bins + HISTOGRAM_BINS * <int>queue, ps)


cdef inline int64_t port_transfer_counted(const Waits* waits, Queue queue, Port* port, int64_t t, int64_t cost) noexcept nogil:
    """`port_transfer`; counts the wait."""
    cdef int64_t bucket, grant_ps
    if port_try_reserve(port, t, cost, &bucket, &grant_ps):
        return max_i64(grant_ps, t)
    return port_wait_counted(waits, queue, port, bucket, t, cost)
