"""Accesses to a partitioned L2."""
from libc.stdint cimport int64_t, uint32_t

from buddysim.replay.l2.l2 cimport evict_line, home_slice_load
from buddysim.replay.memory.address_map cimport CacheLocation
from buddysim.replay.memory.memory cimport MemorySystem, Slice, SmPorts
from buddysim.replay.primitives.address_map_simd cimport LineLocation
from buddysim.replay.primitives.cache cimport (
    PENDING, DIRTY, Line, CacheSet, mark_pending, cache_empty_way, cache_find, pending_at, cache_replace, cache_set,
    cache_touch, sector_count,
)
from buddysim.replay.primitives.division cimport divide, divisor
from buddysim.replay.primitives.extremes cimport max_i64
from buddysim.replay.primitives.kinds cimport SLICE_PORT
from buddysim.replay.primitives.mshrs cimport mshr_pop
from buddysim.replay.primitives.waits cimport port_transfer_counted


cdef int partitions_init(MemorySystem* m, dict n) except -1:
    """Sets up the partitions of a machine (`parameters.engine_numbers`)."""
    m.l2.partitions, m.l2.remote_latency_ps = n["l2_partitions"], n["remote_latency_ps"]
    m.l2.partition_sms = (<uint32_t>n["sms"] + m.l2.partitions - 1) / m.l2.partitions
    m.l2.partition_slices = divisor(<int>n["slices"] // <int>n["l2_partitions"])
    if m.l2.partitions > 1:
        m.l2.partitioned_load, m.l2.remote_store_delay = partitioned_load, remote_store_delay
    return 0


cdef uint32_t partition_of(const MemorySystem* m, const SmPorts* sm) noexcept nogil:
    """The local partition of an SM."""
    return <uint32_t>(sm - m.crossbar.sms) / m.l2.partition_sms


cdef void replica_location(const MemorySystem* m, uint32_t slice, uint32_t set_offset, uint32_t partition,
                           CacheLocation* cache_location) noexcept nogil:
    """Location of a replica in a partition, for the line whose home is `slice` and `set_offset`."""
    cdef uint32_t home = divide(m.l2.partition_slices, slice)
    cache_location.slice = slice + (partition - home) * m.l2.partition_slices.by
    cache_location.set_offset = set_offset + (cache_location.slice - slice) * m.l2.cache.sets.by * m.l2.cache.set_bytes


cdef int64_t partitioned_load(MemorySystem* m, const SmPorts* sm, const LineLocation* at, unsigned int requested, bint for_atomic,
                              int64_t t) noexcept nogil:
    """Sectors for a load or atomic that leaves the crossbar at `t`; returns their arrival in the local partition."""
    cdef uint32_t own_partition = partition_of(m, sm)
    cdef bint is_remote = divide(m.l2.partition_slices, at.slice) != own_partition
    cdef int64_t request_ps = m.l2.remote_latency_ps >> 1 if is_remote else 0
    cdef int64_t return_ps = m.l2.remote_latency_ps - request_ps if is_remote else 0
    cdef Slice* slice = &m.l2.slices[at.slice]
    cdef CacheLocation home
    if is_remote and not for_atomic:
        return load_through_replica(m, at, requested, own_partition, t)
    if for_atomic:
        home.slice, home.set_offset = at.slice, at.l2_set
        invalidate_replicas(m, &home, at.entry, requested)
    t = port_transfer_counted(&m.waits, SLICE_PORT, &slice.port, t + request_ps, sector_count(requested) * m.l2.slice_cost)
    if m.on_access != NULL:
        t = m.on_access(m, at.entry, t)
    return home_slice_load(m, slice, at, requested, for_atomic, t) + return_ps


cdef int64_t load_through_replica(MemorySystem* m, const LineLocation* at, unsigned int requested, uint32_t partition,
                                  int64_t t) noexcept nogil:
    """Loads through the local partition, where the home slice is remote; the sectors stay there as a replica."""
    cdef int64_t request_ps = m.l2.remote_latency_ps >> 1, return_ps = m.l2.remote_latency_ps - request_ps, way, data, done
    cdef int64_t* mshr
    cdef int64_t* ready_ps
    cdef unsigned int line = 0, present, missing, in_flight
    cdef uint32_t evicted_entry
    cdef CacheLocation cache_location
    cdef Slice* local_slice
    cdef Slice* home
    cdef CacheSet set
    replica_location(m, at.slice, at.l2_set, partition, &cache_location)
    local_slice = &m.l2.slices[cache_location.slice]
    t = port_transfer_counted(&m.waits, SLICE_PORT, &local_slice.port, t, sector_count(requested) * m.l2.slice_cost)
    if m.on_access != NULL:
        t = m.on_access(m, at.entry, t)
    set = cache_set(&m.l2.cache, cache_location.set_offset)
    way = cache_find(&m.l2.cache, &set, at.entry)
    if way >= 0:
        cache_touch(&m.l2.cache, &set, way)
        line = set.lines[way]
    else:
        way = cache_replace(&m.l2.cache, &set, at.entry, &evicted_entry)
        t = evict_line(m, local_slice, evicted_entry, &set, way, t)
        set.lines[way] = 0
    ready_ps = set.ready_ps + way
    data = t
    present = line & requested
    missing = requested & ~present
    in_flight = pending_at(line, ready_ps, t) & present
    if in_flight:
        data = ready_ps[0]
        m.count.l2_read_mshr_merges += sector_count(in_flight)
    m.count.l2_read_hits += sector_count(present & ~in_flight)
    if not missing:
        m.count.l2_lines += 1
        m.count.l2_line_hits += 1
        return data
    mshr = mshr_pop(&local_slice.mshrs)
    home = &m.l2.slices[at.slice]
    done = max_i64(t, mshr[0]) + request_ps
    done = port_transfer_counted(&m.waits, SLICE_PORT, &home.port, done, sector_count(missing) * m.l2.slice_cost)
    done = home_slice_load(m, home, at, missing, False, done) + return_ps
    mshr[0] = done
    set.lines[way] = mark_pending(line, ready_ps, missing, t, done)
    return max_i64(data, done)


cdef int64_t remote_store_delay(MemorySystem* m, const SmPorts* sm, const LineLocation* at, unsigned int written) noexcept nogil:
    """Added latency of a store, both directions together; invalidates its sectors in all replicas."""
    cdef CacheLocation home
    home.slice, home.set_offset = at.slice, at.l2_set
    invalidate_replicas(m, &home, at.entry, written)
    return m.l2.remote_latency_ps if divide(m.l2.partition_slices, at.slice) != partition_of(m, sm) else 0


cdef bint has_replica(const MemorySystem* m, const CacheLocation* home, uint32_t entry) noexcept nogil:
    """Whether a partition other than the home holds a replica of an entry."""
    cdef uint32_t partition, own_partition = divide(m.l2.partition_slices, home.slice)
    cdef CacheLocation cache_location
    cdef CacheSet set
    for partition in range(m.l2.partitions):
        if partition != own_partition:
            replica_location(m, home.slice, home.set_offset, partition, &cache_location)
            set = cache_set(&m.l2.cache, cache_location.set_offset)
            if cache_find(&m.l2.cache, &set, entry) >= 0:
                return True
    return False


cdef void invalidate_replicas(const MemorySystem* m, const CacheLocation* home, uint32_t entry,
                              unsigned int sectors) noexcept nogil:
    """Invalidates sectors of an entry in all replicas."""
    cdef uint32_t partition, own_partition = divide(m.l2.partition_slices, home.slice)
    cdef int64_t way
    cdef CacheLocation cache_location
    cdef CacheSet set
    for partition in range(m.l2.partitions):
        if partition != own_partition:
            replica_location(m, home.slice, home.set_offset, partition, &cache_location)
            set = cache_set(&m.l2.cache, cache_location.set_offset)
            way = cache_find(&m.l2.cache, &set, entry)
            if way >= 0:
                invalidate_sectors(m, &set, way, sectors)


cdef int invalidate_sectors(const MemorySystem* m, const CacheSet* set, int64_t way, unsigned int sectors) noexcept nogil:
    """Invalidates sectors of a line; nothing is written back. Returns the number of dirty ones."""
    cdef unsigned int line = set.lines[way], dropped
    dropped = sectors | sectors << DIRTY | sectors << PENDING
    set.lines[way] = <Line>(line & ~dropped)
    if sectors and not set.lines[way]:
        cache_empty_way(&m.l2.cache, set, way)
    return sector_count(line >> DIRTY & sectors)
