"""Warps, schedulers and L1s: what happens in an SM, from a warp's issue to what it waits for.

A warp's clock runs as if every load came back at once (`v_*`, in ps from the warp's start); `shift` is what it has lost against
that: waiting for loads, barriers and issue slots. A load blocks the warp at the instruction that first uses its result: from there
on the shift is at least (arrival - time of the use on the clock).
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from buddysim.replay.cache cimport (
    SectorCache, cache_coming, cache_find, cache_install, cache_lines, cache_not_yet, cache_prefetch, cache_ready_ps, cache_set,
    cache_touch, cache_victim, prefetch, sector_count,
)
from buddysim.replay.dram cimport larger
from buddysim.replay.events cimport NEVER, smaller
from buddysim.replay.memory cimport MemorySystem, Spot, histogram_add, l2_load, l2_prefetch, l2_spot, l2_store
from buddysim.trace.records cimport FLAG_BYPASS_L1, FLAG_NO_RETURN, FLAG_TIMED, OP_ATOMIC, OP_STORE, WarpOp, WarpRecord

cdef enum:
    MAX_WARPS = 64              # per SM
    MAX_PENDING = 34            # loads of one warp whose use is still ahead
    NO_GREEDY = 64
    WARP_BITS = 6

cdef struct Pending:
    int64_t use_v               # when the first use would issue, on the warp's clock
    int64_t arrival_ps

cdef struct Warp:
    const WarpOp* op            # the next one; == end: only the tail is left
    const WarpOp* end
    const uint64_t* lines       # of the chunk
    const uint64_t* next_lines  # of the next operation, NULL without one
    const WarpRecord* record
    int64_t v_now               # the last operation's issue on the warp's clock
    int64_t v_next              # the next one's
    int64_t shift
    int64_t last_arrival_ps     # the latest arrival of anything: the warp can't end before
    int32_t block               # resident block
    int32_t slots               # issue slots that the next operation takes; 0: already taken
    int32_t n_pending
    int32_t at_barrier
    int32_t sm
    int32_t reserved
    Pending[34] pending         # MAX_PENDING of them; a whole number of 64 B host cache lines in all

cdef struct Scheduler:
    int64_t[128] ready          # a winner tree as in `events`: leaf i is warp i, oldest first; time << WARP_BITS | warp, or NEVER
    uint8_t[64] slot            # the warp's slot in the SM
    int leaves                  # a power of two
    int n
    int greedy                  # the warp that issued last, or NO_GREEDY
    int64_t next_issue_ps       # an instruction per cycle
    int64_t slots_free_ps       # issue slots before this are taken

cdef enum:
    LOOK_AHEAD = 64             # warps whose turn comes soon
    STREAM_AHEAD = 5           # events before its streams are fetched
    SETS_AHEAD = 10             # events before the sets that it will touch are fetched
    LINES_AHEAD = 8             # lines of one operation whose sets are fetched before their turn

cdef struct LookAhead:
    Warp* warps[64]
    unsigned int at

cdef struct CoreTiming:
    int64_t cycle_ps
    int64_t step_ps
    int64_t issue_interval_ps
    int64_t assumed_ps          # an instruction of an untimed trace
    int64_t barrier_ps
    int64_t scale_num           # gaps and chains are scaled by num / den
    int64_t scale_den
    int round_robin

cdef struct L1s:
    int enabled
    SectorCache cache
    int64_t hit_ps
    int64_t line_ps             # one line through the port
    int64_t* free_ps            # [sms]
    int mshrs
    int64_t* mshr_ps            # [sms][mshrs]
    int* mshr_next              # [sms]
    int64_t* store_ps           # [sms][mshrs]: when the stores on their way are taken by the L2
    int* store_next             # [sms]
    int64_t queue_ps            # work that may wait in front of the L1 before warps stop issuing to it
    uint8_t* used               # [sms]: has anything been put in since the last invalidation


cdef inline int64_t chain_ps(const CoreTiming* core, uint8_t flags, int64_t instructions, int64_t cycles,
                             int64_t steps) noexcept nogil:
    """How long `instructions` of a warp take that follow each other, nothing missing."""
    cdef int64_t ps, least
    if flags & FLAG_TIMED:
        ps = cycles * core.cycle_ps + steps * core.step_ps
        least = instructions * core.issue_interval_ps
        ps = larger(ps, least)
    else:
        ps = instructions * core.assumed_ps
    return ps if core.scale_num == core.scale_den else ps * core.scale_num / core.scale_den


cdef inline void warp_pend(Warp* warp, int64_t use_v, int64_t arrival) noexcept nogil:
    """Remembers a load whose use is ahead. Where too many are, the first to be used is waited for at once."""
    cdef int i, first = 0
    if warp.n_pending == MAX_PENDING:
        for i in range(1, MAX_PENDING):
            if warp.pending[i].use_v < warp.pending[first].use_v:
                first = i
        warp.shift = larger(warp.shift, warp.pending[first].arrival_ps - warp.pending[first].use_v)
        warp.pending[first] = warp.pending[MAX_PENDING - 1]
        warp.n_pending -= 1
    warp.pending[warp.n_pending] = Pending(use_v, arrival)
    warp.n_pending += 1


cdef inline void warp_wait(Warp* warp, int64_t v) noexcept nogil:
    """Has the warp wait for the loads that are used up to `v` on its clock."""
    cdef int i = 0
    while i < warp.n_pending:
        if warp.pending[i].use_v <= v:
            warp.shift = larger(warp.shift, warp.pending[i].arrival_ps - warp.pending[i].use_v)
            warp.n_pending -= 1
            if i < warp.n_pending:
                warp.pending[i] = warp.pending[warp.n_pending]
        else:
            i += 1


cdef inline int64_t warp_next(const CoreTiming* core, Warp* warp) noexcept nogil:
    """When the warp's next operation, or its end, is ready."""
    cdef const WarpOp* op = warp.op
    cdef int64_t gap
    if op < warp.end:
        gap = op.gap
        warp.v_next = warp.v_now + chain_ps(core, op.flags, gap + 1, op.chain_cycles, op.chain_steps)
        if core.scale_num != core.scale_den:
            gap = gap * core.scale_num / core.scale_den
        warp.slots = <int32_t>(gap + 1) if gap < 0x7FFFFFFF else 0x7FFFFFFF
        warp_wait(warp, warp.v_next)
        warp.next_lines = warp.lines + op.first_line if op.n_lines else NULL
        prefetch(op + 2)
        prefetch(warp.next_lines + 8)
        return warp.v_next + warp.shift
    warp.next_lines = NULL
    gap = warp.record.tail_gap
    warp.v_next = warp.v_now + chain_ps(core, FLAG_TIMED if warp.record.tail_cycles else 0, gap,
                                        warp.record.tail_cycles, warp.record.tail_steps)
    warp.slots = <int32_t>gap if gap < 0x7FFFFFFF else 0x7FFFFFFF
    warp_wait(warp, 0x7FFFFFFFFFFFFFFF)
    return larger(warp.v_next + warp.shift, warp.last_arrival_ps)


cdef inline void scheduler_set(Scheduler* scheduler, int warp, int64_t time) noexcept nogil:
    """Changes when a warp can issue."""
    cdef int64_t* ready = scheduler.ready
    cdef int64_t key = time << WARP_BITS | warp if time != NEVER else time
    cdef unsigned int node = scheduler.leaves + warp
    ready[node] = key
    while node > 1:
        key = smaller(key, ready[node ^ 1])
        node >>= 1
        ready[node] = key


cdef inline int64_t scheduler_ready(const Scheduler* scheduler, int warp) noexcept nogil:
    """When a warp can issue."""
    cdef int64_t key = scheduler.ready[scheduler.leaves + warp]
    return key >> WARP_BITS if key != NEVER else key


cdef inline void scheduler_add(Scheduler* scheduler, int slot, int64_t ready_ps) noexcept nogil:
    """A new warp, the youngest."""
    scheduler.slot[scheduler.n] = <uint8_t>slot
    scheduler.n += 1
    scheduler_set(scheduler, scheduler.n - 1, ready_ps)


cdef inline void scheduler_remove(Scheduler* scheduler, int warp) noexcept nogil:
    """A warp has ended; the younger ones move up."""
    cdef int i
    for i in range(warp, scheduler.n - 1):
        scheduler.slot[i] = scheduler.slot[i + 1]
        scheduler_set(scheduler, i, scheduler_ready(scheduler, i + 1))
    scheduler.n -= 1
    scheduler_set(scheduler, scheduler.n, NEVER)
    if scheduler.greedy == warp:
        scheduler.greedy = NO_GREEDY
    elif scheduler.greedy > warp and scheduler.greedy != NO_GREEDY:
        scheduler.greedy -= 1


cdef inline int64_t scheduler_time(const Scheduler* scheduler) noexcept nogil:
    """When the scheduler can issue next."""
    cdef int64_t earliest = scheduler.ready[1]
    return larger(earliest >> WARP_BITS, scheduler.next_issue_ps) if earliest != NEVER else earliest


cdef inline int scheduler_pick(const Scheduler* scheduler, int64_t now, bint round_robin) noexcept nogil:
    """The warp to issue at `now`: the one that issued last if it can, else the oldest (or the next in turn) that can."""
    cdef int warp
    if not round_robin:
        if scheduler.greedy != NO_GREEDY and scheduler_ready(scheduler, scheduler.greedy) <= now:
            return scheduler.greedy
        if scheduler.ready[1] >> WARP_BITS == now:
            return scheduler.ready[1] & (MAX_WARPS - 1)
        warp = 0
    else:
        warp = scheduler.greedy + 1 if scheduler.greedy + 1 < scheduler.n else 0
    for _ in range(scheduler.n):
        if scheduler_ready(scheduler, warp) <= now:
            break
        warp = warp + 1 if warp + 1 < scheduler.n else 0
    return warp


cdef inline void look_ahead(LookAhead* ahead, const Scheduler* scheduler, Warp* sm_warps, const L1s* l1,
                            const MemorySystem* m) noexcept nogil:
    """Has the host fetch what the scheduler's next warp will need, in three steps that follow from each other.

    Thousands of warps take turns, each with a stream of its own: by its turn nothing of a warp is left in the host's caches.
    """
    cdef Warp* warp = NULL
    cdef uint32_t entry
    cdef Spot spot
    ahead.at += 1
    if scheduler.n:
        warp = sm_warps + scheduler.slot[scheduler.ready[1] & (MAX_WARPS - 1)]
        prefetch(warp)
        prefetch(<const char*>warp + 64)
    ahead.warps[ahead.at % LOOK_AHEAD] = warp
    warp = ahead.warps[(ahead.at - STREAM_AHEAD) % LOOK_AHEAD]
    if warp:
        prefetch(warp.op)
        prefetch(warp.op + 1)
        prefetch(warp.next_lines)
    warp = ahead.warps[(ahead.at - SETS_AHEAD) % LOOK_AHEAD]
    if warp and warp.next_lines:
        entry = <uint32_t>(warp.next_lines[0] >> 8)
        cache_prefetch(&l1.cache, cache_set(&l1.cache, warp.sm, entry))
        l2_spot(m, entry, &spot)
        l2_prefetch(m, &spot)


cdef inline int64_t l1_load(L1s* l1, MemorySystem* m, int sm, const Spot* spot, unsigned int wanted, bint bypass,
                            int64_t t) noexcept nogil:
    """A load's sectors of one line; returns when the last of them can be used."""
    cdef int64_t set, arrival, start
    cdef int64_t* mshr
    cdef unsigned int present, merged, missing = wanted
    cdef int way
    if not l1.enabled or bypass:
        return l2_load(m, spot, wanted, sm, False, t)
    m.count.l1_accesses += sector_count(wanted)
    m.count.l1_lines += 1
    set = cache_set(&l1.cache, sm, spot.entry)
    way = cache_find(&l1.cache, set, spot.entry)
    arrival = t + l1.hit_ps
    if way >= 0:
        cache_touch(&l1.cache, set, way)
        m.count.l1_line_hits += 1
        present = cache_lines(&l1.cache, set)[way].valid & wanted
        missing = wanted & ~present
        merged = cache_not_yet(&l1.cache, set, way, t) & present
        if merged:
            arrival = larger(arrival, cache_ready_ps(&l1.cache, set)[way])
            m.count.l1_merged += sector_count(merged)
        m.count.l1_hits += sector_count(present & ~merged)
        if not missing:
            return arrival
    else:
        way = cache_victim(&l1.cache, set)
        cache_install(&l1.cache, set, way, spot.entry)
        l1.used[sm] = 1
    mshr = l1.mshr_ps + <int64_t>sm * l1.mshrs + l1.mshr_next[sm]
    if mshr[0] > t:                 # none is free: this access holds up those behind it
        l1.free_ps[sm] += mshr[0] - t
        start = mshr[0]
    else:
        start = t
    start = l2_load(m, spot, missing, sm, False, start)
    mshr[0] = start
    l1.mshr_next[sm] += 1
    if l1.mshr_next[sm] == l1.mshrs:
        l1.mshr_next[sm] = 0
    m.count.load_ps += start - t
    m.count.loads_missed += 1
    histogram_add(m.count.load_histogram, start - t)
    cache_coming(&l1.cache, set, way, missing, t, start)
    return larger(arrival, start)


cdef inline int64_t l1_store(L1s* l1, MemorySystem* m, int sm, const Spot* spot, unsigned int touched, unsigned int whole,
                             int64_t t) noexcept nogil:
    """A store's sectors of one line: written through, nothing allocated. Returns when the SM hears of it."""
    cdef int64_t* place = l1.store_ps + <int64_t>sm * l1.mshrs + l1.store_next[sm]
    if place[0] > t:
        l1.free_ps[sm] += place[0] - t
        t = place[0]
    t = l2_store(m, spot, touched, whole, sm, t)
    place[0] = t
    l1.store_next[sm] += 1
    if l1.store_next[sm] == l1.mshrs:
        l1.store_next[sm] = 0
    return t


cdef inline void warp_access(const CoreTiming* core, L1s* l1, MemorySystem* m, Warp* warp, int sm, int64_t now) noexcept nogil:
    """Carries out the warp's memory operation, which issues at `now`, and moves the warp to the next one."""
    cdef const WarpOp* op = warp.op
    cdef const uint64_t* lines = warp.lines + op.first_line
    cdef int i, n = op.n_lines
    cdef int64_t arrival = now, t
    cdef Spot[16] spots             # a ring: the line at hand, and those that are fetched ahead
    cdef Spot* spot
    cdef unsigned int sectors
    m.now_ps = m.dram.now_ps = now
    m.count.memory_instructions += 1
    m.count.line_accesses += n
    for i in range(n if n < LINES_AHEAD else LINES_AHEAD):
        l2_spot(m, <uint32_t>(lines[i] >> 8), &spots[i])
        if i:
            l2_prefetch(m, &spots[i])
    for i in range(n):
        if i + LINES_AHEAD < n:
            spot = &spots[(i + LINES_AHEAD) & 15]
            l2_spot(m, <uint32_t>(lines[i + LINES_AHEAD] >> 8), spot)
            l2_prefetch(m, spot)
        spot = &spots[i & 15]
        sectors = lines[i] & 15
        t = larger(now, l1.free_ps[sm])
        l1.free_ps[sm] = t + l1.line_ps
        if op.kind == OP_STORE:
            m.count.store_sectors += sector_count(sectors)
            t = l1_store(l1, m, sm, spot, sectors, lines[i] >> 4 & 15, t)
        else:
            m.count.load_sectors += sector_count(sectors)
            if op.kind == OP_ATOMIC:
                t = l2_load(m, spot, sectors, sm, True, t)
            else:
                t = l1_load(l1, m, sm, spot, sectors, op.flags & FLAG_BYPASS_L1, t)
        arrival = larger(arrival, t)
    warp.last_arrival_ps = larger(warp.last_arrival_ps, arrival)
    if op.use_distance and op.kind != OP_STORE and not op.flags & FLAG_NO_RETURN:
        warp_pend(warp, warp.v_next + chain_ps(core, op.flags, op.use_distance, op.use_cycles, op.use_steps), arrival)
    # An operation that the L1 can't take yet holds its warp: it has not issued.
    warp_passed(warp, larger(now, l1.free_ps[sm] - l1.queue_ps))


cdef inline void warp_passed(Warp* warp, int64_t now) noexcept nogil:
    """The warp's operation has issued at `now`."""
    warp.shift = now - warp.v_next
    warp.v_now = warp.v_next
    warp.op += 1
