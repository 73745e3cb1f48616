"""Loads and stores of SMs at the L2: hits, misses, write-backs."""
from libc.stdint cimport int64_t, uint8_t, uint32_t

from buddysim.replay.crossbar.crossbar cimport pass_slice, reply_arrival, send_request
from buddysim.replay.memory.memory cimport MemorySystem, Slice, SmPorts
from buddysim.replay.primitives.address_map_simd cimport LineLocation
from buddysim.replay.primitives.arena cimport Arena
from buddysim.replay.primitives.cache cimport (
    DIRTY, CacheSet, Line, cache_find, cache_prefetch, cache_replace, cache_set, cache_touch, mark_pending, pending_at,
    sector_count,
)
from buddysim.replay.primitives.compiler_hints cimport prefetch, unlikely
from buddysim.replay.primitives.extremes cimport max_i64
from buddysim.replay.primitives.kinds cimport L2_MSHR, SLICE_PORT
from buddysim.replay.primitives.mshrs cimport mshr_pop
from buddysim.replay.primitives.port cimport FINE_BITS, port_transfer
from buddysim.replay.primitives.waits cimport count_wait, histogram_add, port_transfer_counted


cdef inline uint8_t* l2_class(const MemorySystem* m, const CacheSet* set, int64_t way) noexcept nogil:
    """The size class of a line's entry after the last store to the line."""
    return m.l2.classes + ((<char*>set.tags - m.l2.cache.set_data) >> 4) + way        # a way takes 16 B of its set


cdef int64_t buffered_writeback(MemorySystem* m, Slice* slice, uint32_t entry, Line line, int new_class, int64_t t) noexcept nogil


cdef inline int64_t evict_line(MemorySystem* m, Slice* slice, uint32_t entry, const CacheSet* set, int64_t way,
                               int64_t t) noexcept nogil:
    """Writes back the dirty sectors of a way that holds `entry`, by the scheme; returns the time at which the way is free."""
    cdef Line line = set.lines[way]
    cdef unsigned int dirty = line >> DIRTY & 15
    if not dirty:
        return t
    m.count.writeback_sectors += sector_count(dirty)
    if unlikely(m.l2.buffers_writebacks):
        return buffered_writeback(m, slice, entry, line, l2_class(m, set, way)[0], t)
    return m.writeback(m, slice, entry, line, l2_class(m, set, way)[0], t)


cdef inline void l2_prefetch(const MemorySystem* m, const LineLocation* at) noexcept nogil:
    """Prefetches the L2 set and the size class of a line into the CPU's cache."""
    cache_prefetch(&m.l2.cache, at.l2_set)
    prefetch(m.entry_classes + at.entry)


cdef inline int64_t l2_way(MemorySystem* m, Slice* slice, uint32_t entry, const CacheSet* set, unsigned int* line,
                           int64_t* t) noexcept nogil:
    """The way of an entry's line, evicted if the line misses; `line` becomes its state, `t` the time at which the way is free."""
    cdef int64_t way = cache_find(&m.l2.cache, set, entry)
    cdef uint32_t evicted_entry
    m.count.l2_lines += 1
    if way >= 0:
        m.count.l2_line_hits += 1
        cache_touch(&m.l2.cache, set, way)
        line[0] = set.lines[way]
        return way
    line[0] = 0
    way = cache_replace(&m.l2.cache, set, entry, &evicted_entry)
    t[0] = evict_line(m, slice, evicted_entry, set, way, t[0])
    return way


cdef inline unsigned int pair_partners(unsigned int sectors) noexcept nogil:
    """The other sectors of the aligned pairs that contain `sectors`."""
    return (sectors & 5) << 1 | (sectors & 10) >> 1


cdef inline int64_t l2_fetch(MemorySystem* m, Slice* slice, const LineLocation* at, unsigned int* line, int64_t* ready_ps,
                             unsigned int missing, int64_t t) noexcept nogil:
    """Fills missing sectors of a line, by the scheme; returns their arrival."""
    cdef int64_t* mshr = mshr_pop(&slice.mshrs)
    cdef int64_t done, begin = t
    cdef unsigned int filled = missing
    m.count.l2_read_misses += sector_count(missing)
    if unlikely(mshr[0] > t):
        count_wait(&m.waits, L2_MSHR, mshr[0] - t)
        begin = mshr[0]
    if unlikely(m.l2.fetch_pairs):
        m.l2.extra_fetch_mask = pair_partners(missing) & ~(missing | line[0])
    done = m.fill(m, slice, at, &filled, begin)
    mshr[0] = done
    filled &= ~line[0]
    m.count.fill_sectors += sector_count(filled)
    line[0] = mark_pending(line[0], ready_ps, filled, t, done)      # merges sectors stored in part
    histogram_add(m.count.memory_histogram, done - t)
    return done


cdef inline int64_t dirty_store_pass(MemorySystem* m, Slice* slice, unsigned int rewritten, int64_t t) noexcept nogil:
    """Delays a store for its sectors that are already dirty; returns the time at which they have passed the slice's port."""
    cdef int64_t cost = sector_count(rewritten) * m.l2.dirty_store_cost
    if not rewritten:
        return t
    return port_transfer_counted(&m.waits, SLICE_PORT, &slice.port, t, cost) + (cost >> FINE_BITS)


cdef inline int64_t home_slice_load(MemorySystem* m, Slice* slice, const LineLocation* at, unsigned int requested,
                                    bint for_atomic, int64_t t) noexcept nogil:
    """Loads sectors of a line for a load or atomic that passes its slice's port at `t`; returns the arrival of the last one."""
    cdef int n = sector_count(requested)
    cdef int64_t way, data, arrival = t
    cdef unsigned int line, present, missing, in_flight
    cdef CacheSet set = cache_set(&m.l2.cache, at.l2_set)
    cdef int64_t* ready_ps
    way = l2_way(m, slice, at.entry, &set, &line, &arrival)
    ready_ps = set.ready_ps + way
    prefetch(ready_ps)
    data = arrival
    present = line & requested
    missing = requested & ~present
    if present:
        in_flight = pending_at(line, ready_ps, arrival) & present
        if in_flight:
            data = ready_ps[0]
            m.count.l2_read_mshr_merges += sector_count(in_flight)
        m.count.l2_read_hits += sector_count(present & ~in_flight)
    if missing:
        data = max_i64(data, l2_fetch(m, slice, at, &line, ready_ps, missing, arrival))
    if for_atomic:
        m.count.sectors_made_dirty += sector_count(requested & ~(line >> DIRTY))
        line |= requested << DIRTY
        l2_class(m, &set, way)[0] = <uint8_t>at.size_class
        data = port_transfer(&slice.atomics, &m.horizon, data, n * m.l2.atomic_cost) + (n * m.l2.atomic_cost >> FINE_BITS)
    set.lines[way] = <Line>line
    if for_atomic and unlikely(m.l2.dirtied != NULL):
        m.l2.dirtied(m, slice, &set, arrival)
    return data


cdef inline int64_t load_at_slice(MemorySystem* m, SmPorts* sm, const LineLocation* at, unsigned int requested, bint for_atomic,
                                  int64_t t) noexcept nogil:
    """`l2_load` from the request's arrival at its slice on."""
    cdef int n = sector_count(requested)
    cdef int64_t data
    cdef Slice* slice = &m.l2.slices[at.slice]
    if unlikely(m.l2.partitioned_load != NULL):
        data = m.l2.partitioned_load(m, sm, at, requested, for_atomic, t)
    else:
        t = pass_slice(m, slice, n, t)
        if unlikely(m.on_access != NULL):
            t = m.on_access(m, at.entry, t)
        data = home_slice_load(m, slice, at, requested, for_atomic, t)
    return reply_arrival(m, sm, slice, n, data)


cdef inline int64_t l2_load(MemorySystem* m, SmPorts* sm, const LineLocation* at, unsigned int requested, bint for_atomic,
                            int64_t t) noexcept nogil:
    """Loads sectors of a line for a load or atomic of an SM at `t`; returns the time at which the SM can use the last one."""
    t = send_request(m, sm, &m.l2.slices[at.slice], sector_count(requested), 1, t)
    return load_at_slice(m, sm, at, requested, for_atomic, t)


cdef inline int64_t store_at_slice(MemorySystem* m, SmPorts* sm, const LineLocation* at, unsigned int written,
                                   unsigned int fully_written, int64_t arrival) noexcept nogil:
    """`l2_store` from the request's arrival at its slice on."""
    cdef int n = sector_count(written)
    cdef int64_t way, extra_ps = 0
    cdef unsigned int line
    cdef Slice* slice = &m.l2.slices[at.slice]
    cdef CacheSet set = cache_set(&m.l2.cache, at.l2_set)
    if unlikely(m.l2.remote_store_delay != NULL):
        extra_ps = m.l2.remote_store_delay(m, sm, at, written)
    arrival = pass_slice(m, slice, n, arrival + (extra_ps >> 1))
    if unlikely(m.on_access != NULL):
        arrival = m.on_access(m, at.entry, arrival)
    way = l2_way(m, slice, at.entry, &set, &line, &arrival)
    if unlikely(m.l2.dirty_store_cost != 0):
        arrival = dirty_store_pass(m, slice, written & (line >> DIRTY), arrival)
    m.count.l2_writes += n
    m.count.l2_write_hits += sector_count(written & (line | line >> DIRTY))
    m.count.sectors_made_dirty += sector_count(written & ~(line >> DIRTY))
    set.lines[way] = <Line>(line | fully_written | written << DIRTY)
    l2_class(m, &set, way)[0] = <uint8_t>at.size_class
    if unlikely(m.l2.dirtied != NULL):
        arrival = m.l2.dirtied(m, slice, &set, arrival)
    if unlikely(m.crossbar.send_replies != NULL):
        arrival = m.crossbar.send_replies(m, sm, slice, n, arrival)
    arrival += (n - 1) * m.crossbar.store_sector_ps
    return arrival + m.crossbar.acknowledgement_ps + (extra_ps - (extra_ps >> 1))


cdef inline int64_t l2_store(MemorySystem* m, SmPorts* sm, const LineLocation* at, unsigned int written, unsigned int fully_written,
                             int64_t t) noexcept nogil:
    """Stores sectors of a line; returns the arrival of the acknowledgement at the SM."""
    cdef int n = sector_count(written)
    t = send_request(m, sm, &m.l2.slices[at.slice], n, n, t)
    return store_at_slice(m, sm, at, written, fully_written, t)


cdef int l2_init(Arena* arena, MemorySystem* m, dict n) except -1
cdef int64_t invalidate_lines(MemorySystem* m, uint32_t first_entry, uint32_t entries) noexcept nogil
cdef int64_t l2_dirty_sectors(const MemorySystem* m) noexcept nogil
