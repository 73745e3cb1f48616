"""`lrr`: loose round-robin."""
from libc.stdint cimport int64_t

from buddysim.replay.sm.scheduler.base cimport WarpSchedulerBase
from buddysim.replay.sm.issue_order cimport Scheduler, warp_can_issue

ORDER = 1


cdef int pick(const Scheduler* scheduler, int64_t now) noexcept nogil:
    """The first warp that can issue, after the one that issued last."""
    cdef int warp = scheduler.last_issuer
    for _ in range(scheduler.n):
        warp = warp + 1 if warp + 1 < scheduler.n else 0
        if warp_can_issue(scheduler, warp, now):
            break
    return warp


cdef class WarpScheduler(WarpSchedulerBase):
    SUMMARY = "loose round-robin: the first warp that can issue after the one that issued last"

    def __cinit__(self):
        self.pick = pick
