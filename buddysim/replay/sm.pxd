"""Warps, schedulers and L1s: what happens in an SM, from a warp's issue to what it waits for.

A warp's clock runs as if every load came back at once (`v_*`, in ps from the warp's start); `shift_ps` is what it has lost against
that: waiting for loads, barriers and issue slots. A load blocks the warp at the instruction that first uses its result: from there
on the shift is at least (arrival - time of the use on the clock).
"""
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from buddysim.replay.cache cimport (
    Row, SectorCache, cache_coming, cache_find, cache_install, cache_not_yet, cache_prefetch, cache_ready_ps, cache_row, cache_set,
    cache_touch, cache_victim, sector_count,
)
from buddysim.replay.dram cimport larger
from buddysim.replay.events cimport NEVER, smaller
from buddysim.replay.hints cimport prefetch, unlikely
from buddysim.replay.memory cimport (
    MemorySystem, Spot, histogram_add, l2_load, l2_prefetch, l2_spot, l2_store, ring_turn,
)
from buddysim.replay.port cimport port_prefetch
from buddysim.replay.stream cimport NEVER_USED, OP_END, StreamOp, stream_lines, stream_next
from buddysim.trace.records cimport OP_ATOMIC, OP_STORE

cdef enum:
    MAX_WARPS = 64              # per SM
    MAX_PENDING = 34            # loads of one warp whose use is still ahead
    MAX_LATER = 33              # those but for the first
    NO_GREEDY = 64
    WARP_BITS = 6

cdef struct Pending:
    int64_t use_v_ps            # when the first use would issue, on the warp's clock
    int64_t arrival_ps

cdef struct Warp:               # one line of the host's cache
    const StreamOp* op          # the next one
    int64_t v_ps                # on the warp's clock: the next operation's issue, or the last one's where `warp_next` is to come
    int64_t shift_ps
    int64_t last_arrival_ps     # the latest arrival of anything: the warp can't end before
    Pending first               # of the loads whose use is ahead; the others are in `later`
    int32_t block               # resident block
    uint32_t slots              # issue slots that the next operation takes; 0: already taken
    int16_t n_pending
    int16_t at_barrier
    int32_t number              # sm * MAX_WARPS + its slot there

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
    STREAM_AHEAD = 5            # events before its streams are fetched
    SETS_AHEAD = 10             # events before the sets that it will touch are fetched
    LINES_AHEAD = 8             # lines of one operation whose sets are fetched before their turn

cdef struct LookAhead:
    Warp* warps[64]
    unsigned int at

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


cdef inline Pending* warp_pending(Warp* warp, Pending* later, int i) noexcept nogil:
    """A warp's load number `i` whose use is ahead; `later` is where all but the first are."""
    return &later[i - 1] if i else &warp.first


cdef inline void warp_pend(Warp* warp, Pending* later, int64_t use_v_ps, int64_t arrival_ps) noexcept nogil:
    """Remembers a load whose use is ahead. Where too many are, the first to be used is waited for at once."""
    cdef int i, soonest = 0
    cdef Pending* load
    if unlikely(warp.n_pending == MAX_PENDING):
        for i in range(1, MAX_PENDING):
            if later[i - 1].use_v_ps < warp_pending(warp, later, soonest).use_v_ps:
                soonest = i
        load = warp_pending(warp, later, soonest)
        warp.shift_ps = larger(warp.shift_ps, load.arrival_ps - load.use_v_ps)
        load[0] = later[MAX_LATER - 1]
        warp.n_pending -= 1
    load = warp_pending(warp, later, warp.n_pending)
    load.use_v_ps, load.arrival_ps = use_v_ps, arrival_ps
    warp.n_pending += 1


cdef inline void warp_wait(Warp* warp, Pending* later, int64_t v_ps) noexcept nogil:
    """Has the warp wait for the loads that are used up to `v_ps` on its clock."""
    cdef int i = 0
    cdef Pending* load
    while i < warp.n_pending:
        load = warp_pending(warp, later, i)
        if load.use_v_ps <= v_ps:
            warp.shift_ps = larger(warp.shift_ps, load.arrival_ps - load.use_v_ps)
            warp.n_pending -= 1
            if i < warp.n_pending:
                load[0] = later[warp.n_pending - 1]
        else:
            i += 1


cdef inline int64_t warp_next(Warp* warp, Pending* later) noexcept nogil:
    """When the warp's next operation, or its end, is ready."""
    cdef const StreamOp* op = warp.op
    warp.v_ps += op.chain_ps
    warp.slots = op.slots
    if op.kind == OP_END:
        warp_wait(warp, later, 0x7FFFFFFFFFFFFFFF)
        return larger(warp.v_ps + warp.shift_ps, warp.last_arrival_ps)
    warp_wait(warp, later, warp.v_ps)
    prefetch(<const char*>op + 64)          # for the warp's next turn: by then it is at hand
    return warp.v_ps + warp.shift_ps


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


cdef inline void locate_line(const L1s* l1, const MemorySystem* m, int sm, uint32_t entry, Spot* spot) noexcept nogil:
    """Where an SM's L1 and the L2 would hold an entry."""
    l2_spot(m, entry, spot)
    spot.l1_set = <uint32_t>cache_set(&l1.cache, sm, entry)


cdef inline void prefetch_line(const L1s* l1, const MemorySystem* m, const Spot* spot) noexcept nogil:
    """Has the host fetch what an access to a line will look at."""
    cache_prefetch(&l1.cache, spot.l1_set)
    l2_prefetch(m, spot)


cdef inline void look_ahead(LookAhead* ahead, const Scheduler* scheduler, Warp* sm_warps, const L1s* l1,
                            const MemorySystem* m) noexcept nogil:
    """Has the host fetch what the scheduler's next warp will need, in three steps that follow from each other.

    Thousands of warps take turns, each with a stream of its own: by its turn nothing of a warp is left in the host's caches.
    """
    cdef Warp* warp = NULL
    cdef uint32_t entry
    cdef Spot spot
    cdef unsigned int part
    ahead.at += 1
    if scheduler.n:
        warp = sm_warps + scheduler.slot[scheduler.ready[1] & (MAX_WARPS - 1)]
        prefetch(warp)
    ahead.warps[ahead.at % LOOK_AHEAD] = warp
    warp = ahead.warps[(ahead.at - STREAM_AHEAD) % LOOK_AHEAD]
    if warp:
        prefetch(warp.op)
        prefetch(<const char*>warp.op + 64)
    warp = ahead.warps[(ahead.at - SETS_AHEAD) % LOOK_AHEAD]
    if warp and warp.op.n_lines:
        for part in range(2, (sizeof(StreamOp) + 8 * warp.op.n_lines + 63) // 64):
            prefetch(<const char*>warp.op + 64 * part)
        entry = <uint32_t>(stream_lines(warp.op)[0] >> 8)
        locate_line(l1, m, warp.number // MAX_WARPS, entry, &spot)
        prefetch_line(l1, m, &spot)
        port_prefetch(&m.slice_ports[spot.slice], m.at_slice_ps)
        port_prefetch(&m.codecs[spot.slice], m.at_codec_ps)


cdef inline int64_t l1_load(L1s* l1, MemorySystem* m, int sm, const Spot* spot, unsigned int wanted, bint bypass, bint for_atomic,
                            int64_t t) noexcept nogil:
    """A load's or atomic's sectors of one line; returns when the last of them can be used."""
    cdef int64_t arrival = t, start = t
    cdef int64_t* mshr = NULL
    cdef int* next
    cdef unsigned int present, merged, missing = wanted
    cdef Row row
    cdef int way = 0
    bypass |= for_atomic or not l1.enabled
    if not bypass:
        m.count.l1_accesses += sector_count(wanted)
        m.count.l1_lines += 1
        row = cache_row(&l1.cache, spot.l1_set)
        way = cache_find(&l1.cache, &row, spot.entry)
        arrival = t + l1.hit_ps
        if way >= 0:
            cache_touch(&l1.cache, &row, way)
            m.count.l1_line_hits += 1
            present = row.lines[way] & wanted
            missing = wanted & ~present
            merged = cache_not_yet(&l1.cache, &row, way, t) & present
            if merged:
                arrival = larger(arrival, cache_ready_ps(&l1.cache, row.set, way)[0])
                m.count.l1_merged += sector_count(merged)
            m.count.l1_hits += sector_count(present & ~merged)
            if not missing:
                return arrival
        else:
            way = cache_victim(&l1.cache, &row)
            cache_install(&l1.cache, &row, way, spot.entry)
            l1.used[sm] = 1
        prefetch(cache_ready_ps(&l1.cache, row.set, way))
        next = &l1.mshr_next[sm]
        mshr = l1.mshr_ps + <int64_t>sm * l1.mshrs + next[0]
        ring_turn(next, l1.mshrs)
        if mshr[0] > t:             # none is free: this access holds up those behind it
            l1.free_ps[sm] += mshr[0] - t
            start = mshr[0]
    start = l2_load(m, spot, missing, sm, for_atomic, start)
    if bypass:
        return start
    mshr[0] = start
    m.count.load_ps += start - t
    m.count.loads_missed += 1
    histogram_add(m.count.load_histogram, start - t)
    cache_coming(&l1.cache, &row, way, missing, t, start)
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
    ring_turn(&l1.store_next[sm], l1.mshrs)
    return t


cdef inline void warp_access(L1s* l1, MemorySystem* m, Warp* warp, Pending* later, int sm, int64_t now) noexcept nogil:
    """Carries out the warp's memory operation, which issues at `now`, and moves the warp to the next one."""
    cdef const StreamOp* op = warp.op
    cdef const uint64_t* lines = stream_lines(op)
    cdef int i, n = op.n_lines
    cdef int64_t arrival = now, t
    cdef Spot[16] spots             # a ring: the line at hand, and those that are fetched ahead
    cdef Spot* spot
    cdef unsigned int sectors
    m.now_ps = m.dram.now_ps = now
    m.count.memory_instructions += 1
    m.count.line_accesses += n
    for i in range(n if n < LINES_AHEAD else LINES_AHEAD):
        locate_line(l1, m, sm, <uint32_t>(lines[i] >> 8), &spots[i])
        if i:
            prefetch_line(l1, m, &spots[i])
    for i in range(n):
        if i + LINES_AHEAD < n:
            spot = &spots[(i + LINES_AHEAD) & 15]
            locate_line(l1, m, sm, <uint32_t>(lines[i + LINES_AHEAD] >> 8), spot)
            prefetch_line(l1, m, spot)
        spot = &spots[i & 15]
        sectors = lines[i] & 15
        t = larger(now, l1.free_ps[sm])
        l1.free_ps[sm] = t + l1.line_ps
        if op.kind == OP_STORE:
            m.count.store_sectors += sector_count(sectors)
            t = l1_store(l1, m, sm, spot, sectors, lines[i] >> 4 & 15, t)
        else:
            m.count.load_sectors += sector_count(sectors)
            t = l1_load(l1, m, sm, spot, sectors, op.bypass_l1, op.kind == OP_ATOMIC, t)
        arrival = larger(arrival, t)
    warp.last_arrival_ps = larger(warp.last_arrival_ps, arrival)
    if op.use_ps != NEVER_USED:
        warp_pend(warp, later, warp.v_ps + op.use_ps, arrival)
    # An operation that the L1 can't take yet holds its warp: it has not issued.
    warp_passed(warp, larger(now, l1.free_ps[sm] - l1.queue_ps))


cdef inline void warp_passed(Warp* warp, int64_t now) noexcept nogil:
    """The warp's operation has issued at `now`."""
    warp.shift_ps = now - warp.v_ps
    warp.op = stream_next(warp.op)
