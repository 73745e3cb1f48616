"""Set-up of the L2, and operations on many of its lines."""
from buddysim.replay.l2.dirty_limit cimport dirty_limit_init
from buddysim.replay.l2.partitions cimport has_replica, invalidate_replicas, partitions_init
from buddysim.replay.memory.address_map cimport CacheLocation, l2_location
from buddysim.replay.memory.allocations cimport allocation_of
from buddysim.replay.memory.memory cimport AllocationState, L2
from buddysim.replay.primitives.arena cimport arena_zeroed
from buddysim.replay.primitives.cache cimport Line, cache_empty_way, cache_init
from buddysim.replay.primitives.division cimport divisor
from buddysim.replay.primitives.extremes cimport max_i64
from buddysim.replay.primitives.kinds cimport HOST
from buddysim.replay.primitives.mshrs cimport mshr_pop, mshrs_init

cdef extern from *:
    int bits_set "__builtin_popcountll"(unsigned long long x) noexcept nogil


cdef int l2_init(Arena* arena, MemorySystem* m, dict n) except -1:
    """Sets up the L2 of a machine (`l2.numbers`), empty."""
    cdef L2* l2 = &m.l2
    cdef int i, n_slices = n["slices"]
    l2.slice_cost, l2.dirty_store_cost, l2.atomic_cost = n["slice_cost"], n["dirty_store_cost"], n["atomic_cost"]
    l2.fetch_pairs, l2.interleave_shift = n["l2_fetch_pairs"], n["interleave_shift"]
    l2.buffers_writebacks = n["l2_writeback_buffer"] > 0
    l2.n_slices, l2.pseudo_per_slice = divisor(n_slices), divisor(n["pseudo_per_slice"])
    l2.slices = <Slice*>arena_zeroed(arena, n_slices, sizeof(Slice))
    for i in range(n_slices):
        mshrs_init(arena, &l2.slices[i].mshrs, n["l2_mshrs"])
        if l2.buffers_writebacks:
            mshrs_init(arena, &l2.slices[i].writebacks, n["l2_writeback_buffer"])
        l2.slices[i].first_pseudo = i // <int>n["slices_per_channel"] * <int>n["pseudo_per_slice"]
    partitions_init(m, n)
    dirty_limit_init(m, n)
    cache_init(arena, &l2.cache, n_slices, n["l2_sets"], n["l2_ways"])
    l2.classes = <uint8_t*>arena_zeroed(arena, <size_t>n_slices * l2.cache.sets.by, l2.cache.padded_ways)
    return 0


cdef int64_t buffered_writeback(MemorySystem* m, Slice* slice, uint32_t entry, Line line, int new_class, int64_t t) noexcept nogil:
    """`MemorySystem.writeback` by way of the slice's write-back buffer; returns when a slot takes the line."""
    cdef int64_t* slot_free_ps = mshr_pop(&slice.writebacks)
    t = max_i64(t, slot_free_ps[0])
    slot_free_ps[0] = m.writeback(m, slice, entry, line, new_class, t)
    return t


cdef int64_t invalidate_lines(MemorySystem* m, uint32_t first_entry, uint32_t entries) noexcept nogil:
    """Invalidates the lines of an evicted page in the L1s and the L2, except those of host memory.

    The scheme's own transfer of the page includes their dirty sectors; returns the number of those.
    """
    cdef int64_t way, before = m.count.writeback_sectors
    cdef uint32_t entry, set_offset
    cdef CacheLocation cache_location
    cdef CacheSet set
    cdef AllocationState* allocation
    cdef unsigned int dirty
    for entry in range(first_entry, first_entry + entries):
        l2_location(m, entry, &cache_location)
        set = cache_set(&m.l2.cache, cache_location.set_offset)
        way = cache_find(&m.l2.cache, &set, entry)
        if m.l2.partitions > 1 and has_replica(m, &cache_location, entry) and allocation_of(m, entry).placement != HOST:
            invalidate_replicas(m, &cache_location, entry, 15)
        if way >= 0:
            allocation = allocation_of(m, entry)
            if allocation.placement == HOST:
                continue
            dirty = set.lines[way] >> DIRTY & 15
            if dirty:
                allocation.writebacks += 1
                m.count.writeback_sectors += sector_count(dirty)
            cache_empty_way(&m.l2.cache, &set, way)
    for set_offset in range(m.l1.units * m.l1.sets.by):
        set = cache_set(m.l1, set_offset * m.l1.set_bytes)
        for way in range(m.l1.ways):
            if set.tags[way] - first_entry < entries:
                cache_empty_way(m.l1, &set, way)
    return m.count.writeback_sectors - before


cdef int64_t l2_dirty_sectors(const MemorySystem* m) noexcept nogil:
    """Number of dirty sectors in the L2."""
    cdef int64_t set_offset, total = 0
    cdef uint32_t way
    for set_offset in range(<int64_t>m.l2.cache.units * m.l2.cache.sets.by):
        for way in range(m.l2.cache.ways):
            total += bits_set(cache_set(&m.l2.cache, <uint32_t>set_offset * m.l2.cache.set_bytes).lines[way] >> DIRTY & 15)
    return total
