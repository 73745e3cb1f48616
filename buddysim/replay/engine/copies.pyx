"""Effects of memcpy, memset and free on the L2. A sector's number is 4 x its entry number + its index in the entry."""
from libc.stdint cimport uint64_t

from buddysim.replay.l2.l2 cimport buffered_writeback, evict_line, l2_class
from buddysim.replay.l2.partitions cimport invalidate_replicas, invalidate_sectors
from buddysim.replay.memory.address_map cimport CacheLocation, l2_location, locate_line
from buddysim.replay.memory.allocations cimport allocation_of
from buddysim.replay.memory.memory cimport Slice
from buddysim.replay.primitives.address_map_simd cimport LineLocation, location_begin
from buddysim.replay.primitives.cache cimport DIRTY, Line, CacheSet, cache_find, cache_replace, cache_set, cache_touch
from buddysim.replay.primitives.extremes cimport max_i64
from buddysim.replay.primitives.kinds cimport ENTRY_BYTES, HOST

cdef enum:
    INSTALL_FACTOR = 2  # of a range larger than the L2, the L2 can hold only the end

cdef extern from *:
    """
    #define PS_PER_S INT64_C(1000000000000)
    """
    int64_t PS_PER_S


cdef inline unsigned int sectors_within(uint32_t entry, int64_t first_sector, int64_t end_sector) noexcept nogil:
    """Mask of the sectors of an entry that lie in a range."""
    cdef int64_t first = first_sector - 4 * <int64_t>entry, end = end_sector - 4 * <int64_t>entry
    first = 0 if first < 0 else first
    end = 4 if end > 4 else end
    return (1 << end) - (1 << first) if first < end else 0


cdef inline int64_t way_of(const MemorySystem* m, uint32_t entry, CacheLocation* cache_location, CacheSet* set) noexcept nogil:
    """The way of the L2 that holds an entry's line, or -1 if it misses."""
    l2_location(m, entry, cache_location)
    set[0] = cache_set(&m.l2.cache, cache_location.set_offset)
    return cache_find(&m.l2.cache, set, entry)


cdef int64_t l2_invalidate_range(MemorySystem* m, int64_t first_sector, int64_t end_sector) noexcept nogil:
    """Invalidates a range of sectors in the L2, without write-backs. Returns the number of dirty ones."""
    cdef int64_t way, entry, dropped = 0, first = first_sector >> 2, end = (end_sector + 3) >> 2
    cdef int64_t sets = <int64_t>m.l2.cache.units * m.l2.cache.sets.by
    cdef uint32_t set_offset, tag
    cdef unsigned int sectors
    cdef CacheLocation cache_location
    cdef CacheSet set
    if end - first <= sets * m.l2.cache.ways:
        for entry in range(first, end):
            sectors = sectors_within(<uint32_t>entry, first_sector, end_sector)
            way = way_of(m, <uint32_t>entry, &cache_location, &set)
            if way >= 0:
                dropped += invalidate_sectors(m, &set, way, sectors)
            invalidate_replicas(m, &cache_location, <uint32_t>entry, sectors)
        return dropped
    for set_offset in range(<uint32_t>sets):
        set = cache_set(&m.l2.cache, set_offset * m.l2.cache.set_bytes)
        for way in range(m.l2.cache.ways):
            tag = set.tags[way]
            if first <= tag < end:
                dropped += invalidate_sectors(m, &set, way, sectors_within(tag, first_sector, end_sector))
    return dropped


cdef void l2_update_class(MemorySystem* m, uint32_t entry) noexcept nogil:
    """After a memcpy or memset wrote a part of an entry: a dirty line of it gets the entry's size class of now."""
    cdef CacheLocation cache_location
    cdef CacheSet set
    cdef int64_t way = way_of(m, entry, &cache_location, &set)
    if way >= 0:
        l2_class(m, &set, way)[0] = m.entry_classes[entry] & 7


cdef int64_t l2_max_installed(const MemorySystem* m) noexcept nogil:
    """Maximum number of entries, from the end of a memcpy or memset, that the L2 may hold."""
    return INSTALL_FACTOR * <int64_t>m.l2.cache.units * m.l2.cache.sets.by * m.l2.cache.ways


cdef void l2_install(MemorySystem* m, int64_t first_sector, int64_t end_sector, int64_t now) noexcept nogil:
    """Installs sectors that a memcpy or memset wrote at `now`, as clean; they have been invalidated before."""
    cdef int64_t way, entry, first = first_sector >> 2, end = (end_sector + 3) >> 2
    cdef int64_t max_entries = l2_max_installed(m)
    cdef uint32_t evicted_entry
    cdef unsigned int sectors
    cdef CacheLocation cache_location
    cdef CacheSet set
    m.horizon.now_ps = now
    for entry in range(end - max_entries if end - max_entries > first else first, end):
        sectors = sectors_within(<uint32_t>entry, first_sector, end_sector)
        if not sectors or (m.may_cache != NULL and not m.may_cache(m, <uint32_t>entry)):
            continue
        way = way_of(m, <uint32_t>entry, &cache_location, &set)
        if way < 0:
            way = cache_replace(&m.l2.cache, &set, <uint32_t>entry, &evicted_entry)
            evict_line(m, &m.l2.slices[cache_location.slice], evicted_entry, &set, way, now)
            set.lines[way] = 0
        else:
            cache_touch(&m.l2.cache, &set, way)
        set.lines[way] = <Line>(set.lines[way] | sectors)


cdef int64_t copy_sectors(MemorySystem* m, int64_t first_sector, int64_t end_sector, bint write, int64_t begin_ps,
                          int64_t bytes_per_s) noexcept nogil:
    """Moves sectors between a copy engine, from `begin_ps` on at its rate, and memory; returns when the last has moved.

    A write is a write-back, which a slice's write-back buffer takes; a read is a fill of what the L2 does not hold. Entries in
    host memory do not pass the GPU.
    """
    cdef int64_t entry, way, t, first = first_sector >> 2, done = begin_ps
    cdef unsigned int sectors
    cdef Line dirty
    cdef LineLocation line
    cdef CacheSet set
    cdef Slice* slice
    m.horizon.now_ps = begin_ps
    m.l2.extra_fetch_mask = 0
    for entry in range(first, (end_sector + 3) >> 2):
        sectors = sectors_within(<uint32_t>entry, first_sector, end_sector)
        if allocation_of(m, <uint32_t>entry).placement == HOST or (m.may_cache != NULL and not m.may_cache(m, <uint32_t>entry)):
            continue
        t = begin_ps + (entry - first) * ENTRY_BYTES * PS_PER_S / bytes_per_s
        location_begin(&line, <uint64_t>entry << 8 | sectors)
        locate_line(m, m.l1, &line)
        slice = &m.l2.slices[line.slice]
        if write:
            dirty = <Line>(sectors << DIRTY | sectors)
            if m.l2.buffers_writebacks:
                t = buffered_writeback(m, slice, <uint32_t>entry, dirty, m.entry_classes[entry] & 7, t)
            else:
                t = m.writeback(m, slice, <uint32_t>entry, dirty, m.entry_classes[entry] & 7, t)
        else:
            set = cache_set(&m.l2.cache, line.l2_set)
            way = cache_find(&m.l2.cache, &set, <uint32_t>entry)
            if way >= 0:
                sectors &= ~<unsigned int>set.lines[way]
            if sectors & 15:
                sectors &= 15
                t = m.fill(m, slice, &line, &sectors, t)
        done = max_i64(done, t)
    return done
