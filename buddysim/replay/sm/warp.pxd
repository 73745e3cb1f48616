"""Warps: their clocks, and the loads that they wait for.

A warp's clock advances as if every load returned immediately (`clock_ps`, in ps from the warp's start). Its stall time
(`stall_ps`) is the time that it has lost by waiting for loads, barriers and issue slots. A load blocks the warp at the
instruction that first uses its result: from there on, the stall time is at least the arrival of the result less the use on the
clock.
"""
from libc.stdint cimport int16_t, int32_t, int64_t, uint32_t

from buddysim.replay.primitives.compiler_hints cimport prefetch, unlikely
from buddysim.replay.primitives.extremes cimport max_i64
from buddysim.replay.sm.stream cimport NEVER_USED, OP_END, StreamOp, stream_next

cdef enum:
    MAX_WARPS = 64          # per SM
    MAX_PENDING = 34        # pending loads of one warp
    MAX_OTHER_PENDING = 33  # pending loads except the first

# A load that has issued and whose result has not been used.
cdef struct PendingLoad:
    int64_t use_clock_ps  # warp clock at which the first use issues
    int64_t arrival_ps

# One cache line of the CPU.
cdef struct Warp:
    const StreamOp* op         # next operation
    int64_t clock_ps           # warp clock: issue of `op`, or of the operation before it until `warp_next` is called
    int64_t stall_ps           # time lost by waiting; simulated time = clock_ps + stall_ps
    int64_t last_arrival_ps    # latest arrival of any access; the warp cannot exit earlier
    PendingLoad first_pending  # first pending load; the others are in RunState.pending_loads
    int32_t block              # number of its resident block
    uint32_t issue_slots       # issue slots that `op` takes; 0: already taken
    int16_t n_pending_loads
    int16_t at_barrier
    int32_t number             # sm * MAX_WARPS + slot in the SM


cdef void wait_for_earliest_arrival(Warp* warp, PendingLoad* other_pending) noexcept nogil


cdef inline PendingLoad* warp_pending(Warp* warp, PendingLoad* other_pending, int i) noexcept nogil:
    """Pending load number `i` of a warp; `other_pending` has all but the first."""
    return &other_pending[i - 1] if i else &warp.first_pending


cdef inline void warp_add_pending(Warp* warp, PendingLoad* other_pending, int64_t use_clock_ps, int64_t arrival_ps) noexcept nogil:
    """Adds a pending load; the warp has fewer than MAX_PENDING (`warp_next`)."""
    cdef PendingLoad* load = warp_pending(warp, other_pending, warp.n_pending_loads)
    load.use_clock_ps, load.arrival_ps = use_clock_ps, arrival_ps
    warp.n_pending_loads += 1


cdef inline void warp_wait(Warp* warp, PendingLoad* other_pending, int64_t clock_ps) noexcept nogil:
    """Waits for the pending loads that are used up to `clock_ps`."""
    cdef int i = 0
    cdef PendingLoad* load
    while i < warp.n_pending_loads:
        load = warp_pending(warp, other_pending, i)
        if load.use_clock_ps <= clock_ps:
            warp.stall_ps = max_i64(warp.stall_ps, load.arrival_ps - load.use_clock_ps)
            warp.n_pending_loads -= 1
            if i < warp.n_pending_loads:
                load[0] = other_pending[warp.n_pending_loads - 1]
        else:
            i += 1


cdef inline int64_t warp_next(Warp* warp, PendingLoad* other_pending) noexcept nogil:
    """Advances the clock to the next operation, or to the exit; returns the time at which it is ready.

    An operation with a result waits until fewer than MAX_PENDING loads are pending.
    """
    cdef const StreamOp* op = warp.op
    warp.clock_ps += op.gap_latency_ps
    warp.issue_slots = op.issue_slots
    if op.kind == OP_END:
        warp_wait(warp, other_pending, 0x7FFFFFFFFFFFFFFF)
        return max_i64(warp.clock_ps + warp.stall_ps, warp.last_arrival_ps)
    warp_wait(warp, other_pending, warp.clock_ps)
    if unlikely(warp.n_pending_loads == MAX_PENDING) and op.use_ps != NEVER_USED:
        wait_for_earliest_arrival(warp, other_pending)
    prefetch(<const char*>op + 64)          # for the operation after it
    return warp.clock_ps + warp.stall_ps


cdef inline void warp_issued(Warp* warp, int64_t now) noexcept nogil:
    """Records that the warp's operation has issued at `now`."""
    warp.stall_ps = now - warp.clock_ps
    warp.op = stream_next(warp.op)
