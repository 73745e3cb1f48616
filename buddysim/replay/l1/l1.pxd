"""The L1 of an SM: its port, lines and MSHRs.

A banking (`banking/`) may replace `l1_enter`: it decides when each line of a memory instruction enters.
"""
from libc.stdint cimport int32_t, int64_t, uint32_t

from buddysim.replay.l2.l2 cimport l2_load, l2_store
from buddysim.replay.memory.memory cimport MemorySystem, SmPorts
from buddysim.replay.primitives.address_map_simd cimport LineLocation
from buddysim.replay.primitives.arena cimport Arena
from buddysim.replay.primitives.cache cimport (
    Line, CacheSet, SectorCache, mark_pending, cache_find, pending_at, cache_replace, cache_set, cache_touch, sector_count,
)
from buddysim.replay.primitives.compiler_hints cimport unlikely
from buddysim.replay.primitives.extremes cimport max_i64
from buddysim.replay.primitives.kinds cimport L1_MSHR, L1_PORT, L1_STORE
from buddysim.replay.primitives.mshrs cimport Mshrs, mshr_pop_earlier
from buddysim.replay.primitives.waits cimport count_wait, histogram_add
from buddysim.replay.sm.stream cimport StreamOp

# L1 of one SM, except for its lines. One cache line of the CPU.
cdef struct L1:
    int64_t free_ps  # the port is free
    Mshrs loads
    Mshrs stores     # store buffer: an entry is busy until the L2 accepts the store
    uint32_t sets    # offset of its sets in SectorCache.set_data
    int32_t used     # 1: looked up since the last invalidation

cdef struct L1s

ctypedef int64_t (*EnterOp)(const L1s* l1, MemorySystem* m, L1* sm_l1, const LineLocation* line, int number,
                            int64_t now) noexcept nogil     # returns when line `number` of an instruction issued at `now` enters
ctypedef int64_t (*LeaveOp)(const L1s* l1, MemorySystem* m, L1* sm_l1, const StreamOp* op,
                            int64_t arrival) noexcept nogil     # returns the arrival of an instruction whose lines have entered

cdef struct L1s:
    int enabled                   # loads look up the L1
    SectorCache cache
    int64_t hit_ps
    int64_t line_ps               # one line through the port
    int n_mshrs                   # of each SM, and slots of its store buffer
    unsigned int max_mshr_merges  # of a line in flight; 0: no limit
    EnterOp enter                 # of the banking; NULL: `l1_enter`
    LeaveOp leave                 # of the banking; NULL: an instruction has arrived with its last line
    void* banking                 # state of the banking
    int64_t queue_ps              # work that may queue at the L1 before its warps stop issuing
    int64_t* stored_ps            # [resident blocks]: acknowledgement of the block's stores; NULL: each warp waits at exit
    L1* sms                       # [sms]


cdef int l1s_init(Arena* arena, L1s* l1, int n_sms, dict n, object banking) except -1    # L1BankingBase
cdef int64_t load_past_l1(MemorySystem* m, SmPorts* sm, const LineLocation* at, unsigned int requested,
                          bint for_atomic, int64_t t) noexcept nogil


cdef inline int64_t l1_enter(const L1s* l1, MemorySystem* m, L1* sm_l1, int64_t now) noexcept nogil:
    """Time at which a line of an instruction issued at `now` enters: when the port is free, which it then occupies."""
    cdef int64_t t = now
    if sm_l1.free_ps > now:
        t = sm_l1.free_ps
        count_wait(&m.waits, L1_PORT, t - now)
    sm_l1.free_ps = t + l1.line_ps
    return t


cdef enum:
    MERGE_COUNT_SHIFT = 4  # an L1 line has no dirty bits: they count the accesses merged with its pending sectors


cdef inline unsigned int count_mshr_merge(unsigned int line, unsigned int max_mshr_merges, unsigned int merged,
                                          unsigned int pending) noexcept nogil:
    """The line with this access counted as an MSHR merge, up to max_mshr_merges + 1; 0 merges if no sector is pending."""
    if not pending:
        return line & ~(15 << MERGE_COUNT_SHIFT)
    if merged and line >> MERGE_COUNT_SHIFT & 15 <= max_mshr_merges:
        return line + (1 << MERGE_COUNT_SHIFT)
    return line


cdef inline int64_t l1_load(const L1s* l1, MemorySystem* m, L1* sm_l1, SmPorts* ports, const LineLocation* at,
                            unsigned int requested, int64_t t) noexcept nogil:
    """Loads sectors of a line; returns the time at which the last one can be used."""
    cdef int64_t hit = t + l1.hit_ps, start = t, way
    cdef int64_t* mshr
    cdef int64_t* ready_ps
    cdef unsigned int line = 0, present, merged, missing = requested
    cdef uint32_t evicted
    cdef CacheSet set = cache_set(&l1.cache, sm_l1.sets + at.l1_set)
    way = cache_find(&l1.cache, &set, at.entry)
    if way >= 0:
        cache_touch(&l1.cache, &set, way)
        m.count.l1_line_hits += 1
        line = set.lines[way]
        ready_ps = set.ready_ps + way
        present = line & requested
        missing = requested & ~present
        merged = pending_at(line, ready_ps, t) & present
        if unlikely(l1.max_mshr_merges):
            line = count_mshr_merge(line, l1.max_mshr_merges, merged, pending_at(line, ready_ps, t))
            set.lines[way] = <Line>line
            if merged and line >> MERGE_COUNT_SHIFT & 15 > l1.max_mshr_merges:
                sm_l1.free_ps += ready_ps[0] - t
                start = t = ready_ps[0]
                hit = t + l1.hit_ps
                merged = 0
        if merged:
            hit = max_i64(hit, ready_ps[0])
            m.count.l1_mshr_merges += sector_count(merged)
        m.count.l1_hits += sector_count(present & ~merged)
        if not missing:
            return hit
    else:
        way = cache_replace(&l1.cache, &set, at.entry, &evicted)
        ready_ps = set.ready_ps + way
    mshr = mshr_pop_earlier(&sm_l1.loads)
    if mshr[0] > t:                 # all busy: this access blocks later ones
        count_wait(&m.waits, L1_MSHR, mshr[0] - t)
        sm_l1.free_ps += mshr[0] - t
        start = mshr[0]
    start = mshr[0] = l2_load(m, ports, at, missing, False, start)
    m.count.load_ps += start - t
    histogram_add(m.count.load_histogram, start - t)
    set.lines[way] = mark_pending(line, ready_ps, missing, t, start)
    return max_i64(hit, start)


cdef inline int64_t l1_store(MemorySystem* m, L1* sm_l1, SmPorts* ports, const LineLocation* at, unsigned int written,
                             unsigned int fully_written, int64_t t) noexcept nogil:
    """Stores sectors of a line: write-through, no allocation. Returns the arrival of the acknowledgement."""
    cdef int64_t* mshr = mshr_pop_earlier(&sm_l1.stores)
    if mshr[0] > t:
        count_wait(&m.waits, L1_STORE, mshr[0] - t)
        sm_l1.free_ps += mshr[0] - t
        t = mshr[0]
    t = l2_store(m, ports, at, written, fully_written, t)
    mshr[0] = t
    return t
