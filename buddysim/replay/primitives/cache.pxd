"""A sectored, set-associative cache with true LRU: the tags and line states of an L1, an L2 slice or a slice of a scheme's own.

One `SectorCache` contains `units` caches of equal shape (one per SM or per slice). A tag is an entry number (L1, L2) or
another number. Each line has four sectors, each with a valid and a dirty bit. A dirty sector that is not valid was stored in
part: it can be read only after it is merged with memory.

The data of one access are adjacent: a set is its tags, then its LRU order, then its line states, 64 B (one cache line of the
CPU) for eight ways, and then the arrival times of pending sectors.
"""
from libc.stdint cimport int64_t, uint16_t, uint32_t

from buddysim.replay.primitives.arena cimport Arena
from buddysim.replay.primitives.compiler_hints cimport prefetch
from buddysim.replay.primitives.division cimport Divisor, divide, remainder
from buddysim.replay.primitives.set_search cimport SECTOR_COUNT, order_touch, order_touch_oldest, set_match

ctypedef uint16_t Line      # a bit per sector: valid | dirty << DIRTY | pending << PENDING

cdef enum:
    DIRTY = 4
    PENDING = 8  # valid sectors whose data arrive at `ready_ps`

# One set of a cache.
cdef struct CacheSet:
    uint32_t* tags     # [padded_ways]
    char* order        # the ways, most recently used first
    Line* lines        # [padded_ways]
    int64_t* ready_ps  # [padded_ways]: arrival of pending sectors

cdef struct SectorCache:
    uint32_t units        # caches: one per SM or slice
    Divisor sets          # sets of each unit
    uint32_t ways
    uint32_t padded_ways  # 4, or a multiple of 8
    uint32_t oldest_bit   # bit of the oldest way in the order of up to 16 ways: 4 * (ways - 1)
    uint32_t set_bytes    # 16 * padded_ways
    char* set_data        # [units][sets]: tags, order, lines, ready_ps


cdef inline uint32_t hash_u32(uint32_t x) noexcept nogil:
    """Hash of a line number that mixes its high bits into the low ones; spreads strides over sets and slices."""
    x ^= x >> 15
    x *= <uint32_t>0x2C1B3C6D
    x ^= x >> 12
    x *= <uint32_t>0x297A2D39
    x ^= x >> 15
    return x


cdef inline uint32_t cache_set_offset(const SectorCache* cache, uint32_t unit, uint32_t local) noexcept nogil:
    """Where in `set_data` the set for the line number `local` of unit `unit` lies."""
    cdef uint32_t index, group = divide(cache.sets, local), sets = cache.sets.by
    if cache.sets.is_power:
        index = (local ^ hash_u32(group)) & (sets - 1)
    else:
        index = remainder(cache.sets, local - group * sets + remainder(cache.sets, hash_u32(group)))
    return (unit * sets + index) * cache.set_bytes


cdef inline CacheSet cache_set(const SectorCache* cache, uint32_t set_offset) noexcept nogil:
    """The set at an offset in `set_data`."""
    cdef size_t ways = cache.padded_ways
    cdef char* set = cache.set_data + set_offset
    return CacheSet(<uint32_t*>set, set + 4 * ways, <Line*>(set + 6 * ways), <int64_t*>(set + 8 * ways))


cdef inline void cache_prefetch(const SectorCache* cache, uint32_t set_offset) noexcept nogil:
    """Prefetches a set into the CPU's cache, except for the arrival times of more than eight ways."""
    cdef const char* set = cache.set_data + set_offset
    prefetch(set)
    prefetch(set + 64)


cdef inline int64_t cache_find(const SectorCache* cache, const CacheSet* set, uint32_t tag) noexcept nogil:
    """The way of the set that holds `tag`, or -1 if it misses."""
    return set_match(set.tags, cache.padded_ways, tag)


cdef inline void cache_touch(const SectorCache* cache, const CacheSet* set, int64_t way) noexcept nogil:
    """Makes the way the most recently used one of its set."""
    order_touch(set.order, cache.ways, way)


cdef inline int64_t cache_replace(const SectorCache* cache, const CacheSet* set, uint32_t tag, uint32_t* evicted) noexcept nogil:
    """Gives the least recently used way (an empty one first) to `tag`; `evicted` becomes the tag evicted from it.

    Returns the way. Its line still has the state of the evicted tag; the caller sets the new state.
    """
    cdef int64_t way = order_touch_oldest(set.order, cache.ways, cache.oldest_bit)
    evicted[0] = set.tags[way]
    set.tags[way] = tag
    return way


cdef inline Line mark_pending(unsigned int line, int64_t* ready_ps, unsigned int sectors, int64_t now,
                              int64_t ready) noexcept nogil:
    """Returns the line with `sectors` valid and pending until `ready`; `ready_ps` becomes the latest arrival of pending sectors."""
    cdef unsigned int pending = sectors
    if not line:
        ready_ps[0] = ready
        return <Line>(sectors | sectors << PENDING)
    if line >> PENDING and ready_ps[0] > now:
        pending |= line >> PENDING
        ready = ready if ready > ready_ps[0] else ready_ps[0]
    ready_ps[0] = ready
    return <Line>(line & ((1 << PENDING) - 1) | sectors | pending << PENDING)


cdef inline unsigned int pending_at(unsigned int line, const int64_t* ready_ps, int64_t now) noexcept nogil:
    """Valid sectors of a line that are pending at `now`."""
    cdef unsigned int pending = line >> PENDING
    return pending if pending and ready_ps[0] > now else 0


cdef inline int sector_count(unsigned int mask) noexcept nogil:
    """Number of sectors in the lower four bits of a mask."""
    return SECTOR_COUNT[mask & 15]


cdef int cache_init(Arena* arena, SectorCache* cache, int units, int sets, int ways) except -1
cdef void cache_clear_unit(SectorCache* cache, int unit) noexcept nogil
cdef void cache_empty_way(const SectorCache* cache, const CacheSet* set, int64_t way) noexcept nogil
