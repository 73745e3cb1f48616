"""Rare operations of an SM."""


cdef void wait_for_earliest_arrival(Warp* warp, PendingLoad* other_pending) noexcept nogil:
    """Waits for the pending load that arrives first, before the operation at the warp's clock, to make an entry free."""
    cdef int i, earliest = 0
    cdef PendingLoad* load
    for i in range(1, MAX_PENDING):
        if other_pending[i - 1].arrival_ps < warp_pending(warp, other_pending, earliest).arrival_ps:
            earliest = i
    load = warp_pending(warp, other_pending, earliest)
    warp.stall_ps = max_i64(warp.stall_ps, load.arrival_ps - warp.clock_ps)
    load[0] = other_pending[MAX_OTHER_PENDING - 1]
    warp.n_pending_loads -= 1


cdef void prefetch_next_op(HostPrefetcher* prefetcher, const L1s* l1, const MemorySystem* m, bint round_robin,
                           int step) noexcept nogil:
    """Prefetches the data of the operation that probably issues next, in steps 1, 3 and 5 that depend on each other.

    Step 5 locates its lines, if they are many. Its scheduler does not change before it issues.
    """
    cdef const Scheduler* scheduler = prefetcher.next
    cdef const L1* sm_l1 = &l1.sms[prefetcher.next_sm]
    cdef const StreamOp* op
    cdef const Warp* warp
    cdef int i
    if not scheduler.n:
        return
    warp = prefetcher.next_warps + scheduler.slot[scheduler_pick(scheduler, scheduler_time(scheduler), round_robin)]
    if step == 1:
        prefetch(warp)
        prefetch(sm_l1)
        port_prefetch(&m.sms[prefetcher.next_sm].requests, m.horizon.now_ps)
        port_prefetch(&m.sms[prefetcher.next_sm].replies, m.last_compressor_ps)
        return
    op = warp.op
    if step == 3:
        for i in range(0, 320, 64):         # at least its first 37 lines
            prefetch(<const char*>op + i)
        prefetch(sm_l1.loads.next)
        prefetch(sm_l1.loads.next + 8)
    elif op.n_lines >= MANY_LINES and prefetcher.located != op:
        prefetcher.located = op
        locate_lines(m, &l1.cache, stream_words(op), op.n_lines, prefetcher.lines + prefetcher.located_at)
