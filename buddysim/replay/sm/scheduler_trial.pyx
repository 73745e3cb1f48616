"""A trial of a warp scheduler: which warps it picks."""
from libc.stdint cimport int64_t
from libc.string cimport memcmp

from buddysim.replay.sm.issue_order cimport NO_ISSUER, Scheduler, scheduler_add, scheduler_init, scheduler_pick
from buddysim.replay.sm.scheduler.base cimport WarpSchedulerBase


def picks(WarpSchedulerBase policy, cases):
    """The warps that a policy picks.

    Parameters
    ----------
    policy : an instance of the policy
    cases : of each the times at which its warps can issue (ps), the oldest first; the index of the last issuer, or None; the
        time of the issue (ps)

    Returns
    -------
    list of int, of each case the index picked; None where the policy changed the scheduler
    """
    cdef Scheduler scheduler, before
    cdef int64_t now
    cdef int slot, picked
    cdef list picked_warps = []
    for ready, last_issuer, issued in cases:
        scheduler_init(&scheduler)
        for slot in range(len(ready)):
            scheduler_add(&scheduler, slot, ready[slot])
        scheduler.last_issuer = NO_ISSUER if last_issuer is None else last_issuer
        now = issued
        before = scheduler
        picked = scheduler_pick(&scheduler, now, policy.pick)
        picked_warps.append(picked if memcmp(&before, &scheduler, sizeof(Scheduler)) == 0 else None)
    return picked_warps
