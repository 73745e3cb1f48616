"""A memory instruction: its lines go through the L1, one after the other."""
from libc.stdint cimport int64_t

from buddysim.replay.l1.l1 cimport L1, L1s, l1_enter, l1_load, l1_store, load_past_l1
from buddysim.replay.memory.memory cimport MemorySystem, SmPorts
from buddysim.replay.primitives.address_map_simd cimport LineLocation
from buddysim.replay.primitives.cache cimport sector_count
from buddysim.replay.primitives.compiler_hints cimport prefetch, unlikely
from buddysim.replay.primitives.extremes cimport max_i64
from buddysim.replay.sm.host_prefetch cimport (
    LINES_DISTANCE, MAX_LINES, HostPrefetcher, locate_lines, prefetch_line, prefetch_next_op, prefetch_ports,
)
from buddysim.replay.sm.issue_order cimport PickOp
from buddysim.replay.sm.stream cimport MANY_LINES, NEVER_USED, StreamOp, stream_locations, stream_words
from buddysim.replay.sm.warp cimport PendingLoad, Warp, warp_add_pending, warp_issued
from buddysim.trace.records cimport OP_ATOMIC, OP_LOAD, OP_STORE


cdef inline void warp_access(L1s* l1, MemorySystem* m, HostPrefetcher* prefetcher, Warp* warp, PendingLoad* other_pending, int sm,
                             PickOp pick, int64_t now) noexcept nogil:
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
    cdef SmPorts* ports = &m.crossbar.sms[sm]
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
                prefetch_next_op(prefetcher, l1, m, pick, i)
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
