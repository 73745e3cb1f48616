"""The warps of a scheduler, and which of them issues next.

A policy (`scheduler/`) may replace the choice of `scheduler_pick`.
"""
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memset

from buddysim.replay.primitives.compiler_hints cimport unlikely
from buddysim.replay.primitives.events cimport KEY_NEVER, NEVER, end_of_time, event_key, key_number, key_time, min_key
from buddysim.replay.primitives.extremes cimport max_i64, min_i64
from buddysim.replay.sm.warp cimport MAX_WARPS

cdef enum:
    NO_ISSUER = 64          # no warp issued last
    WARP_BITS = 6           # log2 of MAX_WARPS

# Warps of one scheduler, oldest first.
cdef struct Scheduler:
    int64_t first                # smallest of `ready`
    int64_t next_issue_ps        # one instruction per cycle
    int64_t issue_slots_free_ps  # issue slots before this time are taken
    int n                        # warps
    int last_issuer              # index of the warp that issued a memory instruction last, or NO_ISSUER
    int64_t[4] reserved          # `slot` and `ready` begin cache lines of the CPU
    uint8_t[64] slot             # [n]: warp slot in the SM
    int64_t[64] ready            # [n]: key of each warp's next event (`events`)

ctypedef int (*PickOp)(const Scheduler* scheduler, int64_t now) noexcept nogil      # index of a warp that can issue at `now`


cdef inline void scheduler_init(Scheduler* scheduler) noexcept nogil:
    """Sets up a scheduler without warps."""
    cdef int slot
    memset(scheduler, 0, sizeof(Scheduler))
    scheduler.last_issuer = NO_ISSUER
    scheduler.first = KEY_NEVER
    for slot in range(MAX_WARPS):
        scheduler.ready[slot] = KEY_NEVER


cdef inline void scheduler_suspend(Scheduler* scheduler, int warp) noexcept nogil:
    """Removes a warp from the order, which is invalid until `scheduler_resume`."""
    scheduler.ready[warp] = KEY_NEVER


cdef inline void scheduler_resume(Scheduler* scheduler, int warp, int64_t time) noexcept nogil:
    """Inserts a warp that was removed; like `events_insert`, it reads no value that it stores."""
    cdef int64_t key = event_key(time, end_of_time(WARP_BITS), WARP_BITS, warp)
    scheduler.first = min_i64(key, min_key(scheduler.ready, scheduler.n))
    scheduler.ready[warp] = key


cdef inline void scheduler_set(Scheduler* scheduler, int warp, int64_t time) noexcept nogil:
    """Changes the time at which a warp can issue."""
    scheduler_suspend(scheduler, warp)
    scheduler_resume(scheduler, warp, time)


cdef inline void scheduler_add(Scheduler* scheduler, int slot, int64_t ready_ps) noexcept nogil:
    """Adds a warp, as the youngest."""
    scheduler.slot[scheduler.n] = <uint8_t>slot
    scheduler.n += 1
    scheduler_set(scheduler, scheduler.n - 1, ready_ps)


cdef inline void scheduler_remove(Scheduler* scheduler, int warp) noexcept nogil:
    """Removes a warp that has exited; younger ones move up."""
    cdef int i
    for i in range(warp, scheduler.n - 1):
        scheduler.slot[i] = scheduler.slot[i + 1]
        scheduler.ready[i] = event_key(key_time(scheduler.ready[i + 1], WARP_BITS), end_of_time(WARP_BITS), WARP_BITS, i)
    scheduler_set(scheduler, scheduler.n - 1, NEVER)
    scheduler.n -= 1
    if scheduler.last_issuer == warp:
        scheduler.last_issuer = NO_ISSUER
    elif scheduler.last_issuer > warp and scheduler.last_issuer != NO_ISSUER:
        scheduler.last_issuer -= 1


cdef inline int64_t scheduler_time(const Scheduler* scheduler) noexcept nogil:
    """Earliest time at which the scheduler can issue."""
    return max_i64(key_time(scheduler.first, WARP_BITS), scheduler.next_issue_ps)


cdef inline bint warp_can_issue(const Scheduler* scheduler, int warp, int64_t now) noexcept nogil:
    """Whether a warp can issue at `now`."""
    return scheduler.ready[warp] <= event_key(now, end_of_time(WARP_BITS), WARP_BITS, MAX_WARPS - 1)


cdef inline int scheduler_pick(const Scheduler* scheduler, int64_t now, PickOp pick) noexcept nogil:
    """Index of the warp that issues at `now`: the policy's, or greedy then oldest."""
    cdef int64_t from_now = event_key(now, end_of_time(WARP_BITS), WARP_BITS, 0)        # smallest key of that time
    cdef int warp
    if unlikely(pick != NULL):
        return pick(scheduler, now)
    if scheduler.last_issuer != NO_ISSUER and warp_can_issue(scheduler, scheduler.last_issuer, now):
        return scheduler.last_issuer
    if scheduler.first >= from_now:
        return key_number(scheduler.first, WARP_BITS)
    for warp in range(scheduler.n):
        if warp_can_issue(scheduler, warp, now):
            return warp
    return 0
