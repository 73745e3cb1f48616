"""Set-up of a `SectorCache`, and its rare operations."""
from buddysim.replay.primitives.arena cimport arena_zeroed
from buddysim.replay.primitives.division cimport divisor
from buddysim.replay.primitives.set_search cimport SET_EMPTY, order_init

cdef int cache_init(Arena* arena, SectorCache* cache, int units, int sets, int ways) except -1:
    """Allocates `units` empty caches. Raises MemoryError."""
    cache.units, cache.sets, cache.ways = units, divisor(sets), ways
    cache.padded_ways = 4 if ways <= 4 else (ways + 7) // 8 * 8
    cache.oldest_bit = 4 * (ways - 1)
    cache.set_bytes = 16 * cache.padded_ways
    cache.set_data = <char*>arena_zeroed(arena, <size_t>units * sets, cache.set_bytes)
    for unit in range(units):
        cache_clear_unit(cache, unit)
    return 0


cdef void cache_clear_unit(SectorCache* cache, int unit) noexcept nogil:
    """Invalidates one unit; nothing is written back."""
    cdef uint32_t set_offset, way, first = unit * cache.sets.by
    cdef CacheSet set
    for set_offset in range(first, first + cache.sets.by):
        set = cache_set(cache, set_offset * cache.set_bytes)
        for way in range(cache.padded_ways):
            set.tags[way] = SET_EMPTY
            set.lines[way] = 0
        order_init(set.order, cache.ways)


cdef void cache_empty_way(const SectorCache* cache, const CacheSet* set, int64_t way) noexcept nogil:
    """Invalidates a way, which is then replaced first; nothing is written back."""
    set.tags[way] = SET_EMPTY
    set.lines[way] = 0
    cache_touch(cache, set, way)
    for _ in range(cache.ways - 1):     # all other ways become more recently used, in their order
        order_touch_oldest(set.order, cache.ways, cache.oldest_bit)
