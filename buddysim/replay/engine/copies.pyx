"""What copies, fills and frees do to the L2's lines. A sector's number is 4 x its entry's + its position there."""
from libc.stdint cimport int64_t, uint32_t

from buddysim.replay.engine.cache cimport (
    Line, CacheSet, cache_find, cache_replace, cache_set, cache_touch,
)
from buddysim.replay.engine.address_map cimport CacheLocation, l2_location
from buddysim.replay.engine.memory cimport evict_line, l2_class
from buddysim.replay.engine.partitions cimport invalidate_replicas, invalidate_sectors

cdef enum:
    INSTALL_FACTOR = 2             # of what is larger than the L2 only the last part can stay there


cdef inline unsigned int sectors_within(uint32_t entry, int64_t first_sector, int64_t end_sector) noexcept nogil:
    """Those of an entry's sectors that lie in a range."""
    cdef int64_t first = first_sector - 4 * <int64_t>entry, end = end_sector - 4 * <int64_t>entry
    first = 0 if first < 0 else first
    end = 4 if end > 4 else end
    return (1 << end) - (1 << first) if first < end else 0


cdef inline int64_t way_of(const MemorySystem* m, uint32_t entry, CacheLocation* spot, CacheSet* set) noexcept nogil:
    """The way of the L2 that holds an entry's line, or -1."""
    l2_location(m, entry, spot)
    set[0] = cache_set(&m.l2, spot.set_offset)
    return cache_find(&m.l2, set, entry)


cdef int64_t l2_invalidate_range(MemorySystem* m, int64_t first_sector, int64_t end_sector) noexcept nogil:
    """Drops a range of sectors from the L2: their data in it are dead. Returns how many of them were dirty."""
    cdef int64_t way, entry, dropped = 0, first = first_sector >> 2, end = (end_sector + 3) >> 2
    cdef int64_t sets = <int64_t>m.l2.units * m.l2.sets.by
    cdef uint32_t set_offset, tag
    cdef unsigned int sectors
    cdef CacheLocation spot
    cdef CacheSet set
    if end - first <= sets * m.l2.ways:
        for entry in range(first, end):
            sectors = sectors_within(<uint32_t>entry, first_sector, end_sector)
            way = way_of(m, <uint32_t>entry, &spot, &set)
            if way >= 0:
                dropped += invalidate_sectors(m, &set, way, sectors)
            invalidate_replicas(m, &spot, <uint32_t>entry, sectors)
        return dropped
    for set_offset in range(<uint32_t>sets):
        set = cache_set(&m.l2, set_offset * m.l2.set_bytes)
        for way in range(m.l2.ways):
            tag = set.tags[way]
            if first <= tag < end:
                dropped += invalidate_sectors(m, &set, way, sectors_within(tag, first_sector, end_sector))
    return dropped


cdef void l2_update_class(MemorySystem* m, uint32_t entry) noexcept nogil:
    """An entry has been written in part by a copy or fill: if its line stays dirty, its class after a write-back is that of now."""
    cdef CacheLocation spot
    cdef CacheSet set
    cdef int64_t way = way_of(m, entry, &spot, &set)
    if way >= 0:
        l2_class(m, &set, way)[0] = m.entry_classes[entry] & 7


cdef int64_t l2_max_installed(const MemorySystem* m) noexcept nogil:
    """How many of the last entries that a copy or fill has written may be in the L2."""
    return INSTALL_FACTOR * <int64_t>m.l2.units * m.l2.sets.by * m.l2.ways


cdef void l2_install(MemorySystem* m, int64_t first_sector, int64_t end_sector, int64_t now) noexcept nogil:
    """A copy or fill has written these sectors at `now`, and dropped them: the L2 holds them, clean."""
    cdef int64_t way, entry, first = first_sector >> 2, end = (end_sector + 3) >> 2
    cdef int64_t max_entries = l2_max_installed(m)
    cdef uint32_t evicted_entry
    cdef unsigned int sectors
    cdef CacheLocation spot
    cdef CacheSet set
    m.now_ps = m.dram.now_ps = now
    for entry in range(end - max_entries if end - max_entries > first else first, end):
        sectors = sectors_within(<uint32_t>entry, first_sector, end_sector)
        if not sectors or (m.may_cache != NULL and not m.may_cache(m, <uint32_t>entry)):
            continue
        way = way_of(m, <uint32_t>entry, &spot, &set)
        if way < 0:
            way = cache_replace(&m.l2, &set, <uint32_t>entry, &evicted_entry)
            evict_line(m, &m.slices[spot.slice], evicted_entry, &set, way, now)
            set.lines[way] = 0
        else:
            cache_touch(&m.l2, &set, way)
        set.lines[way] = <Line>(set.lines[way] | sectors)
