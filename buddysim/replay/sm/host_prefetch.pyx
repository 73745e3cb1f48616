"""Prefetching during an operation of many lines."""
from buddysim.replay.sm.issue_order cimport scheduler_pick, scheduler_time
from buddysim.replay.sm.stream cimport stream_words


cdef void prefetch_next_op(HostPrefetcher* prefetcher, const L1s* l1, const MemorySystem* m, PickOp pick,
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
    warp = prefetcher.next_warps + scheduler.slot[scheduler_pick(scheduler, scheduler_time(scheduler), pick)]
    if step == 1:
        prefetch(warp)
        prefetch(sm_l1)
        port_prefetch(&m.crossbar.sms[prefetcher.next_sm].requests, m.horizon.now_ps)
        port_prefetch(&m.crossbar.sms[prefetcher.next_sm].replies, m.last_compressor_ps)
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
