"""`oldest`: the oldest warp that can issue, even if a younger one issued last."""
from libc.stdint cimport int64_t

from buddysim.replay.sm.issue_order cimport Scheduler, warp_can_issue
from buddysim.replay.sm.scheduler.base cimport WarpSchedulerBase


cdef int pick(const Scheduler* scheduler, int64_t now) noexcept nogil:
    cdef int warp = 0
    while not warp_can_issue(scheduler, warp, now):
        warp += 1
    return warp


cdef class WarpScheduler(WarpSchedulerBase):
    SUMMARY = "the oldest warp that can issue"

    def __cinit__(self):
        self.pick = pick
