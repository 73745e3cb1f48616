"""Warps and schedulers of an SM.

A warp's clock advances as if every load returned immediately (`clock_ps`, in ps from the warp's start). Its stall time
(`stall_ps`) is the time that it has lost by waiting for loads, barriers and issue slots. A load blocks the warp at the
instruction that first uses its result: from there on, the stall time is at least the arrival of the result less the use on the
clock.
"""
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from buddysim.replay.engine.cache cimport SectorCache, cache_prefetch, sector_count
from buddysim.replay.engine.division cimport divide
from buddysim.replay.engine.dram cimport max_i64
from buddysim.replay.engine.events cimport KEY_NEVER, NEVER, end_of_time, event_key, key_number, key_time, min_key, min_i64
from buddysim.replay.engine.compiler_hints cimport prefetch, unlikely
from buddysim.replay.engine.address_map cimport locate_line
from buddysim.replay.engine.memory cimport MemorySystem, Slice, SmPorts, l2_prefetch
from buddysim.replay.engine.address_map_simd cimport LineLocation, location_begin, locate_lines_simd
from buddysim.replay.engine.port cimport BUCKET_BITS, PORT_BUCKETS, port_prefetch
from buddysim.replay.engine.stream cimport (
    MANY_LINES, NEVER_USED, OP_END, StreamOp, stream_bytes, stream_locations, stream_next, stream_words,
)
from buddysim.replay.l1.l1 cimport L1, L1s, l1_enter, l1_load, l1_store, load_past_l1
from buddysim.trace.records cimport OP_ATOMIC, OP_LOAD, OP_STORE

cdef enum:
    MAX_WARPS = 64          # per SM
    MAX_PENDING = 34        # pending loads of one warp
    MAX_OTHER_PENDING = 33  # pending loads except the first
    NO_GREEDY = 64          # no warp issued last
    WARP_BITS = 6           # log2 of MAX_WARPS

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

# Warps of one scheduler, oldest first.
cdef struct Scheduler:
    int64_t first                # smallest of `ready`
    int64_t next_issue_ps        # one instruction per cycle
    int64_t issue_slots_free_ps  # issue slots before this time are taken
    int n                        # warps
    int greedy                   # index of the warp that issued last, or NO_GREEDY
    int64_t[4] reserved          # `slot` and `ready` begin cache lines of the CPU
    uint8_t[64] slot             # [n]: warp slot in the SM
    int64_t[64] ready            # [n]: key of each warp's next event (`events`)

cdef enum:
    PREFETCH_WARPS = 64  # warps remembered by HostPrefetcher
    STREAM_DISTANCE = 5  # events between the choice of a warp and the prefetch of its operation stream
    SETS_DISTANCE = 10   # events between that choice and the prefetch of the sets its lines map to
    LINES_DISTANCE = 8   # lines of one operation whose sets are prefetched ahead
    MAX_LINES = 256      # lines of an operation

# Prefetching into the caches of the CPU that runs the simulator. It affects no result.
cdef struct HostPrefetcher:
    Warp* warps[64]          # ring: warps that issue soon
    unsigned int at          # latest index of the ring, not reduced
    # During an operation of many lines, the next operation is prefetched in steps (`prefetch_next_op`).
    Scheduler* next          # scheduler that probably issues next, or NULL
    int next_sm              # its SM
    Warp* next_warps         # warps of that SM
    const StreamOp* located  # operation of many lines that probably comes next, or NULL
    int located_at           # index of its first line in `lines`
    LineLocation[512] lines  # of two operations, MAX_LINES each


cdef void wait_for_earliest_arrival(Warp* warp, PendingLoad* other_pending) noexcept nogil
cdef void prefetch_next_op(HostPrefetcher* prefetcher, const L1s* l1, const MemorySystem* m, bint round_robin,
                           int step) noexcept nogil


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
    if scheduler.greedy == warp:
        scheduler.greedy = NO_GREEDY
    elif scheduler.greedy > warp and scheduler.greedy != NO_GREEDY:
        scheduler.greedy -= 1


cdef inline int64_t scheduler_time(const Scheduler* scheduler) noexcept nogil:
    """Earliest time at which the scheduler can issue."""
    return max_i64(key_time(scheduler.first, WARP_BITS), scheduler.next_issue_ps)


cdef inline int scheduler_pick(const Scheduler* scheduler, int64_t now, bint round_robin) noexcept nogil:
    """Index of the warp that issues at `now`: greedy then oldest, or loose round robin."""
    cdef int64_t from_now = event_key(now, end_of_time(WARP_BITS), WARP_BITS, 0)        # smallest key of that time
    cdef int64_t until_now = from_now | (MAX_WARPS - 1)
    cdef int warp
    if not round_robin:
        if scheduler.greedy != NO_GREEDY and scheduler.ready[scheduler.greedy] <= until_now:
            return scheduler.greedy
        if scheduler.first >= from_now:
            return key_number(scheduler.first, WARP_BITS)
        warp = 0
    else:
        warp = scheduler.greedy + 1 if scheduler.greedy + 1 < scheduler.n else 0
    for _ in range(scheduler.n):
        if scheduler.ready[warp] <= until_now:
            break
        warp = warp + 1 if warp + 1 < scheduler.n else 0
    return warp


cdef inline void locate_lines(const MemorySystem* m, const SectorCache* l1, const uint64_t* lines, int n,
                              LineLocation* locations) noexcept nogil:
    """Locates the lines of an operation, words of `entry << 8 | masks`."""
    cdef int i
    if m.eight_at_a_time:
        locate_lines_simd(&m.rules, lines, n, locations)
        return
    for i in range(n):
        location_begin(&locations[i], lines[i])
        locate_line(m, l1, &locations[i])


cdef inline void prefetch_line(const L1s* l1, const MemorySystem* m, const L1* sm_l1, const LineLocation* at) noexcept nogil:
    """Prefetches the sets of a line into the CPU's cache."""
    cache_prefetch(&l1.cache, sm_l1.sets + at.l1_set)
    l2_prefetch(m, at)


cdef inline void prefetch_ports(const MemorySystem* m, const LineLocation* at) noexcept nogil:
    """Prefetches the ports of a line's slice; requests arrive at about the time of the last one."""
    cdef Slice* slice = &m.slices[at.slice]
    cdef int64_t bucket = (m.last_slice_ps >> BUCKET_BITS) & (PORT_BUCKETS - 1)
    prefetch(slice.mshrs.next)
    prefetch(&slice.port.used[bucket])
    prefetch(&slice.compressor.used[(m.last_compressor_ps >> BUCKET_BITS) & (PORT_BUCKETS - 1)])
    prefetch(m.metadata.set_data + at.metadata_set)
    prefetch(&m.metadata_ports[divide(m.metadata_unit, at.metadata_set)].port.used[bucket])


cdef inline void prefetch_ahead(HostPrefetcher* prefetcher, const Scheduler* scheduler, Warp* sm_warps, const L1s* l1,
                                const MemorySystem* m) noexcept nogil:
    """Prefetches the data of the scheduler's next warp into the CPU's cache, in three steps that depend on each other.

    Thousands of warps issue one after the other, each from its own stream: when a warp issues again, the CPU's caches hold nothing
    of it.
    """
    cdef Warp* warp = NULL
    cdef const LineLocation* at
    cdef unsigned int part
    prefetcher.at += 1
    if scheduler.n:
        warp = sm_warps + scheduler.slot[key_number(scheduler.first, WARP_BITS)]
        prefetch(warp)
    prefetcher.warps[prefetcher.at % PREFETCH_WARPS] = warp
    warp = prefetcher.warps[(prefetcher.at - STREAM_DISTANCE) % PREFETCH_WARPS]
    if warp:
        prefetch(warp.op)
        prefetch(<const char*>warp.op + 64)
    warp = prefetcher.warps[(prefetcher.at - SETS_DISTANCE) % PREFETCH_WARPS]
    if warp and warp.op.n_lines:
        for part in range(2, (stream_bytes(warp.op) + 63) // 64):
            prefetch(<const char*>warp.op + 64 * part)
        if warp.op.n_lines < MANY_LINES:
            at = stream_locations(warp.op)
            prefetch_line(l1, m, &l1.sms[warp.number // MAX_WARPS], at)
            port_prefetch(&m.slices[at.slice].port, m.last_slice_ps)
            port_prefetch(&m.slices[at.slice].compressor, m.last_compressor_ps)


cdef inline void warp_access(L1s* l1, MemorySystem* m, HostPrefetcher* prefetcher, Warp* warp, PendingLoad* other_pending, int sm,
                             bint round_robin, int64_t now) noexcept nogil:
    """Simulates the memory operation that a warp issues at `now`, and advances the warp to the next one."""
    cdef const StreamOp* op = warp.op
    cdef const LineLocation* at = stream_locations(op)
    cdef const LineLocation* next_line
    cdef int i, n = op.n_lines
    cdef bint many = n >= MANY_LINES
    cdef int64_t arrival = now, t
    cdef unsigned int sectors
    cdef int requested_load_sectors = 0              # of loads and atomics
    cdef bint past_l1 = op.kind != OP_LOAD or not l1.enabled    # loads bypass the L1
    cdef L1* sm_l1 = &l1.sms[sm]
    cdef SmPorts* ports = &m.sms[sm]
    m.horizon.now_ps = now
    m.count.memory_instructions += 1
    m.count.line_accesses += n
    if many and prefetcher.located == op:
        at = prefetcher.lines + prefetcher.located_at
        prefetcher.located_at ^= MAX_LINES
        prefetcher.located = NULL
    else:
        if many:
            locate_lines(m, &l1.cache, stream_words(op), n, prefetcher.lines + (prefetcher.located_at ^ MAX_LINES))
            at = prefetcher.lines + (prefetcher.located_at ^ MAX_LINES)
        for i in range(1, n if n < LINES_DISTANCE else LINES_DISTANCE):
            prefetch_line(l1, m, sm_l1, &at[i])
    for i in range(n):
        if many:
            if i + LINES_DISTANCE < n:
                prefetch_line(l1, m, sm_l1, &at[LINES_DISTANCE])
                prefetch_ports(m, &at[LINES_DISTANCE])
                prefetch(sm_l1.loads.next + LINES_DISTANCE)
            elif prefetcher.located:
                next_line = prefetcher.lines + prefetcher.located_at + (i + LINES_DISTANCE - n)
                prefetch_line(l1, m, &l1.sms[prefetcher.next_sm], next_line)
                prefetch_ports(m, next_line)
            if i & 1 and i <= 5 and prefetcher.next:
                prefetch_next_op(prefetcher, l1, m, round_robin, i)
        sectors = at.masks & 15
        t = l1.enter(l1, m, sm_l1, at, i, now) if unlikely(l1.enter != NULL) else l1_enter(l1, m, sm_l1, now)
        if op.kind == OP_STORE:
            m.count.store_sectors += sector_count(sectors)
            t = l1_store(m, sm_l1, ports, at, sectors, at.masks >> 4, t)
        else:
            requested_load_sectors += sector_count(sectors)
            if past_l1:
                t = load_past_l1(m, ports, at, sectors, op.kind == OP_ATOMIC, t)
            else:
                t = l1_load(l1, m, sm_l1, ports, at, sectors, t)
        arrival = max_i64(arrival, t)
        at += 1
    if unlikely(l1.leave != NULL):
        arrival = l1.leave(l1, m, sm_l1, op, arrival)
    m.count.load_sectors += requested_load_sectors
    if requested_load_sectors and not past_l1:
        sm_l1.used = 1
        m.count.l1_accesses += requested_load_sectors
        m.count.l1_lines += n
    if unlikely(l1.stored_ps != NULL) and op.kind == OP_STORE:
        l1.stored_ps[warp.block] = max_i64(l1.stored_ps[warp.block], arrival)
    else:
        warp.last_arrival_ps = max_i64(warp.last_arrival_ps, arrival)
    # If the queue of the L1 is full, the operation issues later.
    warp_issued(warp, max_i64(now, sm_l1.free_ps - l1.queue_ps))
    if op.use_ps != NEVER_USED:
        warp_add_pending(warp, other_pending, warp.clock_ps + op.use_ps, arrival)


cdef inline void warp_issued(Warp* warp, int64_t now) noexcept nogil:
    """Records that the warp's operation has issued at `now`."""
    warp.stall_ps = now - warp.clock_ps
    warp.op = stream_next(warp.op)
