"""Lines that reach L1, L2 and their MSHRs in the order of their arrival: a slower way than that of the order of issue."""
from libc.stdint cimport int64_t

from buddysim.replay.sm.host_prefetch cimport HostPrefetcher
from buddysim.replay.sm.thread_blocks cimport RunState
from buddysim.replay.sm.warp cimport Warp


cdef void issue_in_arrival_order(RunState* g, HostPrefetcher* prefetcher, int scheduler_number, int sm, int position, Warp* warp,
                                 int64_t now) noexcept nogil
cdef void next_arrival_event(RunState* g) noexcept nogil
