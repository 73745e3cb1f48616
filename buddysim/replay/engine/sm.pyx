"""Rare operations of an SM."""
from buddysim.replay.engine.arena cimport arena_zeroed
from buddysim.replay.engine.cache cimport cache_init
from buddysim.replay.engine.memory cimport mshrs_init


cdef int l1s_init(Arena* arena, L1s* l1, int n_sms, dict n) except -1:
    """Sets up the L1s of a machine (`parameters.engine_numbers`)."""
    cdef int sm
    l1.enabled = n["l1_enabled"]
    cache_init(arena, &l1.cache, n_sms, n["l1_sets"], n["l1_ways"])
    l1.bank_model, l1.max_mshr_merges = n["l1_bank_model"], n["l1_max_mshr_merges"]
    l1.hit_ps, l1.line_ps, l1.queue_ps = n["l1_hit_ps"], n["l1_line_ps"], n["l1_queue_ps"]
    l1.sms = <L1*>arena_zeroed(arena, n_sms, sizeof(L1))
    for sm in range(n_sms):
        l1.sms[sm].sets = sm * l1.cache.sets.by * l1.cache.set_bytes
        mshrs_init(arena, &l1.sms[sm].loads, n["l1_mshrs"])
        mshrs_init(arena, &l1.sms[sm].stores, n["l1_mshrs"])
    return 0


cdef int64_t load_past_l1(MemorySystem* m, SmPorts* sm, const LineLocation* at, unsigned int requested,
                          bint for_atomic, int64_t t) noexcept nogil:
    """Loads sectors of a line for an atomic, or for a load that bypasses the L1; returns the time at which the last can be used."""
    return l2_load(m, sm, at, requested, for_atomic, t)


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
