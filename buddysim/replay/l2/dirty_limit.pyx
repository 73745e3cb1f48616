"""Write-backs of sets with more dirty sectors than `l2.max_dirty` allows."""
from libc.stdint cimport int64_t

from buddysim.replay.l2.l2 cimport evict_line
from buddysim.replay.memory.memory cimport MemorySystem, Slice
from buddysim.replay.primitives.cache cimport DIRTY, CacheSet, Line, sector_count
from buddysim.replay.primitives.set_search cimport order_at


cdef int dirty_limit_init(MemorySystem* m, dict n) except -1:
    """Sets up the limit of a machine (`l2.numbers`); 0: none."""
    m.l2.max_dirty_sectors = n["l2_max_dirty_sectors"]
    if m.l2.max_dirty_sectors:
        m.l2.dirtied = clean_set
    return 0


cdef int64_t clean_set(MemorySystem* m, Slice* slice, const CacheSet* set, int64_t t) noexcept nogil:
    """Writes back dirty lines of a set, least recently used first, while it has more than `max_dirty_sectors`.

    The lines stay, clean. Returns the time at which memory has accepted the last one.
    """
    cdef int position, dirty = 0
    cdef int64_t way
    cdef Line line
    for way in range(m.l2.cache.ways):
        dirty += sector_count(set.lines[way] >> DIRTY)
    for position in range(<int>m.l2.cache.ways - 1, -1, -1):
        if dirty <= m.l2.max_dirty_sectors:
            break
        way = order_at(set.order, m.l2.cache.ways, position)
        line = set.lines[way]
        if line >> DIRTY & 15:
            dirty -= sector_count(line >> DIRTY)
            t = evict_line(m, slice, set.tags[way], set, way, t)
            set.lines[way] = <Line>(line & ~(15 << DIRTY))
    return t
