"""Warps, schedulers and L1s: what happens in an SM, from a warp's issue to what it waits for.

A warp's clock runs as if every load returned at once (`v_*`, in ps from the warp's start); `shift_ps` is what it has lost by
waiting for loads, barriers and issue slots. A load blocks the warp at the instruction that first uses its result: from there
on the shift is at least (arrival - time of the use on the clock).
"""
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from buddysim.replay.engine.arena cimport Arena
from buddysim.replay.engine.cache cimport (
    Line, Row, SectorCache, cache_coming, cache_find, cache_not_yet, cache_prefetch, cache_replace, cache_row,
    cache_touch, sector_count,
)
from buddysim.replay.engine.division cimport divide
from buddysim.replay.engine.dram cimport larger
from buddysim.replay.engine.events cimport KEY_NEVER, NEVER, end_of_time, event_key, key_number, key_time, least_key, smaller
from buddysim.replay.engine.compiler_hints cimport prefetch, unlikely
from buddysim.replay.engine.kinds cimport L1_MSHR, L1_PORT, L1_STORE
from buddysim.replay.engine.address_map cimport locate_line
from buddysim.replay.engine.memory cimport (
    MemorySystem, Mshrs, Slice, SmPorts, count_wait, histogram_add, l2_load, l2_prefetch, l2_store, mshr_take_earlier,
)
from buddysim.replay.engine.address_map_simd cimport LineLocation, location_begin, locations_of_lines
from buddysim.replay.engine.port cimport BUCKET_BITS, PORT_BUCKETS, port_prefetch
from buddysim.replay.engine.stream cimport (
    MANY_LINES, NEVER_USED, OP_END, StreamOp, stream_bytes, stream_locations, stream_next, stream_words,
)
from buddysim.trace.records cimport OP_ATOMIC, OP_LOAD, OP_STORE

cdef enum:
    MAX_WARPS = 64              # per SM
    MAX_PENDING = 34            # loads of one warp whose use is still ahead
    MAX_LATER = 33              # those but for the first
    NO_GREEDY = 64
    WARP_BITS = 6

cdef struct Pending:
    int64_t use_v_ps            # when the first use would issue, on the warp's clock
    int64_t arrival_ps

cdef struct Warp:               # one cache line of the CPU
    const StreamOp* op          # the next one
    int64_t v_ps                # on the warp's clock: the next operation's issue, or the last one's where `warp_next` is still due
    int64_t shift_ps
    int64_t last_arrival_ps     # the latest arrival of anything: the warp can't end before
    Pending first               # of the loads whose use is ahead; the others are in `later`
    int32_t block               # resident block
    uint32_t slots              # issue slots that the next operation takes; 0: already taken
    int16_t n_pending
    int16_t at_barrier
    int32_t number              # sm * MAX_WARPS + its slot there

cdef struct Scheduler:
    int64_t first               # the smallest key of a warp's next event (`events`)
    int64_t next_issue_ps       # an instruction per cycle
    int64_t slots_free_ps       # issue slots before this are taken
    int n
    int greedy                  # the warp that issued last, or NO_GREEDY
    int64_t[4] reserved
    uint8_t[64] slot            # the warps' slots in the SM, oldest first
    int64_t[64] ready           # their keys

cdef enum:
    LOOK_AHEAD = 64             # warps whose turn comes soon
    STREAM_AHEAD = 5            # events before its streams are fetched
    SETS_AHEAD = 10             # events before the sets that it will touch are fetched
    LINES_AHEAD = 8             # lines of one operation whose sets are fetched before their turn
    MOST_LINES = 256            # of an operation

cdef struct LookAhead:
    Warp* warps[64]
    unsigned int at
    # While an operation of many lines is carried out, what comes next is found step by step (`approach_next`).
    Scheduler* next             # that is likely to issue next, or NULL
    int next_sm                 # its SM,
    Warp* next_warps            # and that one's warps
    const StreamOp* located     # an operation of many lines that is likely to come next, or NULL
    int located_at              # where its lines begin in `lines`
    LineLocation[512] lines     # of two operations, MOST_LINES each, in whole eights

cdef struct L1:                 # an SM's, its lines apart; one cache line of the CPU
    int64_t free_ps             # of its port
    Mshrs loads
    Mshrs stores                # those on their way to the L2, each until it takes them
    uint32_t sets               # where its sets begin in the rows of all
    int32_t used                # has it been looked at since the last invalidation

cdef enum L1Banks:
    NO_BANKS = 0
    SECTOR_BANKS = 1            # lines whose sectors are in banks of their own
    WORD_BANKS = 2              # lines in tag banks of their own; words of one bank pass one after the other
    TAG_BANKS = 4

cdef struct BankTurns:          # of one operation: turns of its lines at the L1
    int turns
    int sectors                 # of its lines
    uint32_t taken              # of each tag bank, a byte for each

cdef struct L1s:
    int enabled
    SectorCache cache
    int64_t hit_ps
    int64_t line_ps             # one line through the port
    unsigned int max_mshr_merges  # that a line's MSHR takes; 0: any number
    L1Banks banks               # what lets several lines go through it together
    int64_t queue_ps            # work that may wait in front of the L1 before warps stop issuing to it
    int64_t* stored_ps          # [resident blocks]: when the stores of each are acknowledged; NULL: warps' ends wait for theirs
    L1* sms                     # [sms]


cdef int l1s_init(Arena* arena, L1s* l1, int n_sms, dict n) except -1
cdef int64_t load_past_l1(MemorySystem* m, SmPorts* sm, const LineLocation* at, unsigned int wanted,
                          bint for_atomic, int64_t t) noexcept nogil
cdef void wait_soonest(Warp* warp, Pending* later) noexcept nogil
cdef void approach_next(LookAhead* ahead, const L1s* l1, const MemorySystem* m, bint round_robin, int step) noexcept nogil


cdef inline Pending* warp_pending(Warp* warp, Pending* later, int i) noexcept nogil:
    """A warp's load number `i` whose use is ahead; `later` is where all but the first are."""
    return &later[i - 1] if i else &warp.first


cdef inline void warp_pend(Warp* warp, Pending* later, int64_t use_v_ps, int64_t arrival_ps) noexcept nogil:
    """Remembers a load whose use is ahead. Where there are too many, the warp waits at once for the one used first."""
    cdef Pending* load
    if unlikely(warp.n_pending == MAX_PENDING):
        wait_soonest(warp, later)
    load = warp_pending(warp, later, warp.n_pending)
    load.use_v_ps, load.arrival_ps = use_v_ps, arrival_ps
    warp.n_pending += 1


cdef inline void warp_wait(Warp* warp, Pending* later, int64_t v_ps) noexcept nogil:
    """The warp waits for the loads that are used up to `v_ps` on its clock."""
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
    prefetch(<const char*>op + 64)          # for the warp's next turn
    return warp.v_ps + warp.shift_ps


cdef inline void scheduler_take(Scheduler* scheduler, int warp) noexcept nogil:
    """Takes a warp out of the order, which is invalid until `scheduler_put` puts it back."""
    scheduler.ready[warp] = KEY_NEVER


cdef inline void scheduler_put(Scheduler* scheduler, int warp, int64_t time) noexcept nogil:
    """Puts a warp back that was taken out; as in `events_put`, nothing stored here is read here."""
    cdef int64_t key = event_key(time, end_of_time(WARP_BITS), WARP_BITS, warp)
    scheduler.first = smaller(key, least_key(scheduler.ready, scheduler.n))
    scheduler.ready[warp] = key


cdef inline void scheduler_set(Scheduler* scheduler, int warp, int64_t time) noexcept nogil:
    """Changes when a warp can issue."""
    scheduler_take(scheduler, warp)
    scheduler_put(scheduler, warp, time)


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
        scheduler.ready[i] = event_key(key_time(scheduler.ready[i + 1], WARP_BITS), end_of_time(WARP_BITS), WARP_BITS, i)
    scheduler_set(scheduler, scheduler.n - 1, NEVER)
    scheduler.n -= 1
    if scheduler.greedy == warp:
        scheduler.greedy = NO_GREEDY
    elif scheduler.greedy > warp and scheduler.greedy != NO_GREEDY:
        scheduler.greedy -= 1


cdef inline int64_t scheduler_time(const Scheduler* scheduler) noexcept nogil:
    """When the scheduler can issue next."""
    return larger(key_time(scheduler.first, WARP_BITS), scheduler.next_issue_ps)


cdef inline int scheduler_pick(const Scheduler* scheduler, int64_t now, bint round_robin) noexcept nogil:
    """The warp to issue at `now`: the one that issued last if it can, else the oldest (or the next in turn) that can."""
    cdef int64_t from_now = event_key(now, end_of_time(WARP_BITS), WARP_BITS, 0)        # keys of that time
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
    """Where an operation's lines, `entry << 8 | masks`, lie."""
    cdef int i
    if m.eight_at_a_time:
        locations_of_lines(&m.rules, lines, n, locations)
        return
    for i in range(n):
        location_begin(&locations[i], lines[i])
        locate_line(m, l1, &locations[i])


cdef inline void prefetch_line(const L1s* l1, const MemorySystem* m, const L1* own, const LineLocation* at) noexcept nogil:
    """Prefetches what an access to a line will need into the CPU's cache."""
    cache_prefetch(&l1.cache, own.sets + at.l1_set)
    l2_prefetch(m, at)


cdef inline void prefetch_ports(const MemorySystem* m, const LineLocation* at) noexcept nogil:
    """Prefetches what an access to a line will need of its slice: requests come when the last one came, or about then."""
    cdef Slice* slice = &m.slices[at.slice]
    cdef int64_t bucket = (m.at_slice_ps >> BUCKET_BITS) & (PORT_BUCKETS - 1)
    prefetch(slice.mshrs.next)
    prefetch(&slice.port.used[bucket])
    prefetch(&slice.codec.used[(m.at_codec_ps >> BUCKET_BITS) & (PORT_BUCKETS - 1)])
    prefetch(m.metadata.rows + at.metadata_set)
    prefetch(&m.metadata_ports[divide(m.metadata_unit, at.metadata_set)].port.used[bucket])


cdef inline void look_ahead(LookAhead* ahead, const Scheduler* scheduler, Warp* sm_warps, const L1s* l1,
                            const MemorySystem* m) noexcept nogil:
    """Prefetches what the scheduler's next warp will need, in three steps, each of which needs the one before.

    Thousands of warps take turns, each with a stream of its own: by its turn nothing of a warp is left in the CPU's caches.
    """
    cdef Warp* warp = NULL
    cdef const LineLocation* at
    cdef unsigned int part
    ahead.at += 1
    if scheduler.n:
        warp = sm_warps + scheduler.slot[key_number(scheduler.first, WARP_BITS)]
        prefetch(warp)
    ahead.warps[ahead.at % LOOK_AHEAD] = warp
    warp = ahead.warps[(ahead.at - STREAM_AHEAD) % LOOK_AHEAD]
    if warp:
        prefetch(warp.op)
        prefetch(<const char*>warp.op + 64)
    warp = ahead.warps[(ahead.at - SETS_AHEAD) % LOOK_AHEAD]
    if warp and warp.op.n_lines:
        for part in range(2, (stream_bytes(warp.op) + 63) // 64):
            prefetch(<const char*>warp.op + 64 * part)
        if warp.op.n_lines < MANY_LINES:
            at = stream_locations(warp.op)
            prefetch_line(l1, m, &l1.sms[warp.number // MAX_WARPS], at)
            port_prefetch(&m.slices[at.slice].port, m.at_slice_ps)
            port_prefetch(&m.slices[at.slice].codec, m.at_codec_ps)


cdef enum:
    MERGES = 4                  # an L1's line has no dirty sectors: instead, how many accesses have merged with those coming


cdef inline unsigned int counted_merge(unsigned int line, unsigned int merges, unsigned int merged,
                                       unsigned int coming) noexcept nogil:
    """A line with the access at hand counted, up to one more than may merge; none where nothing is coming."""
    if not coming:
        return line & ~(15 << MERGES)
    if merged and line >> MERGES & 15 <= merges:
        return line + (1 << MERGES)
    return line


cdef inline int64_t l1_load(const L1s* l1, MemorySystem* m, L1* own, SmPorts* ports, const LineLocation* at,
                            unsigned int wanted, int64_t t) noexcept nogil:
    """A load's sectors of a line; returns when the last of them can be used."""
    cdef int64_t hit = t + l1.hit_ps, start = t, way
    cdef int64_t* mshr
    cdef int64_t* ready_ps
    cdef unsigned int line = 0, present, merged, missing = wanted
    cdef uint32_t left
    cdef Row row = cache_row(&l1.cache, own.sets + at.l1_set)
    way = cache_find(&l1.cache, &row, at.entry)
    if way >= 0:
        cache_touch(&l1.cache, &row, way)
        m.count.l1_line_hits += 1
        line = row.lines[way]
        ready_ps = row.ready_ps + way
        present = line & wanted
        missing = wanted & ~present
        merged = cache_not_yet(line, ready_ps, t) & present
        if unlikely(l1.max_mshr_merges):
            line = counted_merge(line, l1.max_mshr_merges, merged, cache_not_yet(line, ready_ps, t))
            row.lines[way] = <Line>line
            if merged and line >> MERGES & 15 > l1.max_mshr_merges:
                own.free_ps += ready_ps[0] - t
                start = t = ready_ps[0]
                hit = t + l1.hit_ps
                merged = 0
        if merged:
            hit = larger(hit, ready_ps[0])
            m.count.l1_merged += sector_count(merged)
        m.count.l1_hits += sector_count(present & ~merged)
        if not missing:
            return hit
    else:
        way = cache_replace(&l1.cache, &row, at.entry, &left)
        ready_ps = row.ready_ps + way
    mshr = mshr_take_earlier(&own.loads)
    if mshr[0] > t:                 # none is free: this access blocks those behind it
        count_wait(m, L1_MSHR, mshr[0] - t)
        own.free_ps += mshr[0] - t
        start = mshr[0]
    start = mshr[0] = l2_load(m, ports, at, missing, False, start)
    m.count.load_ps += start - t
    histogram_add(m.count.load_histogram, start - t)
    row.lines[way] = cache_coming(line, ready_ps, missing, t, start)
    return larger(hit, start)


cdef inline int64_t l1_store(MemorySystem* m, L1* own, SmPorts* ports, const LineLocation* at, unsigned int touched,
                             unsigned int whole, int64_t t) noexcept nogil:
    """A store's sectors of a line: written through, nothing allocated. Returns when the SM hears of it."""
    cdef int64_t* mshr = mshr_take_earlier(&own.stores)
    if mshr[0] > t:
        count_wait(m, L1_STORE, mshr[0] - t)
        own.free_ps += mshr[0] - t
        t = mshr[0]
    t = l2_store(m, ports, at, touched, whole, t)
    mshr[0] = t
    return t


cdef inline unsigned int conflict_on(unsigned int sectors, unsigned int banks) noexcept nogil:
    """Of a line's sectors those from the first one on whose bank is taken."""
    cdef unsigned int conflict = sectors & banks
    return sectors & -(conflict & -conflict)


cdef inline unsigned int tag_bank(uint32_t entry) noexcept nogil:
    """Of TAG_BANKS that which holds a line: the exclusive or of its number's pairs of bits."""
    entry ^= entry >> 16
    entry ^= entry >> 8
    entry ^= entry >> 4
    return (entry ^ entry >> 2) & (TAG_BANKS - 1)


cdef inline int64_t tag_turn(const L1s* l1, MemorySystem* m, L1* own, BankTurns* of_op, const LineLocation* line,
                             int64_t now) noexcept nogil:
    """When a line of an operation that issues at `now` enters: in its bank one turn after the operation's line before there."""
    cdef unsigned int shift = 8 * tag_bank(line.entry)
    cdef int turn = of_op.taken >> shift & 255
    cdef int64_t t
    of_op.taken += <uint32_t>1 << shift
    of_op.sectors += sector_count(line.masks & 15)
    if turn == of_op.turns:
        of_op.turns += 1
        own.free_ps = larger(own.free_ps, now) + l1.line_ps
    t = own.free_ps - (of_op.turns - turn) * l1.line_ps
    count_wait(m, L1_PORT, t - now)
    return t


cdef inline int word_turns(const StreamOp* op, int sectors) noexcept nogil:
    """Turns of banks of words that an operation takes: as its sectors, read whole, where the trace says nothing else."""
    cdef int whole = (sectors + 3) >> 2
    return (((whole if whole < 32 else 32) - 1 + op.bank_words) & 31) + 1


cdef inline int64_t pass_words(const L1s* l1, MemorySystem* m, L1* own, const StreamOp* op, const BankTurns* of_op,
                               int64_t arrival) noexcept nogil:
    """After the lines of an operation: further turns for the words of a load or store. Returns when the operation has arrived."""
    cdef int words = word_turns(op, of_op.sectors) if op.kind != OP_ATOMIC else 0
    m.count.l1_turns += (words if words > of_op.turns else of_op.turns) - op.n_lines
    if words > of_op.turns:
        own.free_ps += (words - of_op.turns) * l1.line_ps
        if op.kind == OP_LOAD and l1.enabled:
            return larger(arrival, own.free_ps - l1.line_ps + l1.hit_ps)
    return arrival


cdef inline void warp_access(L1s* l1, MemorySystem* m, LookAhead* ahead, Warp* warp, Pending* later, int sm,
                             bint round_robin, int64_t now) noexcept nogil:
    """Carries out the warp's memory operation, which issues at `now`, and moves the warp to the next one."""
    cdef const StreamOp* op = warp.op
    cdef const LineLocation* at = stream_locations(op)
    cdef LineLocation* locations
    cdef int i, n = op.n_lines
    cdef bint many = n >= MANY_LINES
    cdef int64_t arrival = now, t
    cdef unsigned int sectors, banks = 15       # that the lines before have taken: an instruction begins anew
    cdef int asked = 0              # sectors of loads
    cdef BankTurns turns = BankTurns(0, 0, 0)
    cdef bint past_l1 = op.kind != OP_LOAD or not l1.enabled    # what is loaded
    cdef L1* own = &l1.sms[sm]
    cdef SmPorts* ports = &m.sms[sm]
    m.now_ps = m.dram.now_ps = now
    m.count.memory_instructions += 1
    m.count.line_accesses += n
    if many and ahead.located == op:
        at = ahead.lines + ahead.located_at
        ahead.located_at ^= MOST_LINES
        ahead.located = NULL
    else:
        if many:
            locations = ahead.lines + (ahead.located_at ^ MOST_LINES)
            locate_lines(m, &l1.cache, stream_words(op), n, locations)
            at = locations
        for i in range(1, n if n < LINES_AHEAD else LINES_AHEAD):
            prefetch_line(l1, m, own, &at[i])
    for i in range(n):
        if many:
            if i + LINES_AHEAD < n:
                prefetch_line(l1, m, own, &at[LINES_AHEAD])
                prefetch_ports(m, &at[LINES_AHEAD])
                prefetch(own.loads.next + LINES_AHEAD)
            elif ahead.located:
                prefetch_line(l1, m, &l1.sms[ahead.next_sm], ahead.lines + ahead.located_at + (i + LINES_AHEAD - n))
                prefetch_ports(m, ahead.lines + ahead.located_at + (i + LINES_AHEAD - n))
            if i & 1 and i <= 5 and ahead.next:
                approach_next(ahead, l1, m, round_robin, i)
        sectors = at.masks & 15
        if unlikely(l1.banks != NO_BANKS) and (l1.banks == WORD_BANKS or not sectors & banks):
            if l1.banks == WORD_BANKS:
                t = tag_turn(l1, m, own, &turns, at, now)
            else:                       # it goes with the line before
                t = own.free_ps - l1.line_ps
                banks |= sectors
        else:
            t = now
            if own.free_ps > now:
                t = own.free_ps
                count_wait(m, L1_PORT, t - now)
            own.free_ps = t + l1.line_ps
            banks = conflict_on(sectors, banks)
        if op.kind == OP_STORE:
            m.count.store_sectors += sector_count(sectors)
            t = l1_store(m, own, ports, at, sectors, at.masks >> 4, t)
        else:
            asked += sector_count(sectors)
            if past_l1:
                t = load_past_l1(m, ports, at, sectors, op.kind == OP_ATOMIC, t)
            else:
                t = l1_load(l1, m, own, ports, at, sectors, t)
        arrival = larger(arrival, t)
        at += 1
    if unlikely(l1.banks == WORD_BANKS):
        arrival = pass_words(l1, m, own, op, &turns, arrival)
    m.count.load_sectors += asked
    if asked and not past_l1:
        own.used = 1
        m.count.l1_accesses += asked
        m.count.l1_lines += n
    if unlikely(l1.stored_ps != NULL) and op.kind == OP_STORE:
        l1.stored_ps[warp.block] = larger(l1.stored_ps[warp.block], arrival)
    else:
        warp.last_arrival_ps = larger(warp.last_arrival_ps, arrival)
    # An operation that the L1 can't take yet holds its warp: it has not issued.
    warp_passed(warp, larger(now, own.free_ps - l1.queue_ps))
    if op.use_ps != NEVER_USED:
        warp_pend(warp, later, warp.v_ps + op.use_ps, arrival)


cdef inline void warp_passed(Warp* warp, int64_t now) noexcept nogil:
    """The warp's operation has issued at `now`."""
    warp.shift_ps = now - warp.v_ps
    warp.op = stream_next(warp.op)
