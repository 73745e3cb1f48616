"""What a partitioned L2 does besides."""
from libc.stdint cimport int64_t, uint32_t

from buddysim.replay.engine.cache cimport (
    COMING, DIRTY, PARTIAL, Line, Row, cache_coming, cache_empty_way, cache_find, cache_not_yet, cache_replace, cache_row,
    cache_touch, sector_count,
)
from buddysim.replay.engine.division cimport divide, divisor
from buddysim.replay.engine.dram cimport larger
from buddysim.replay.engine.kinds cimport SLICE_PORT
from buddysim.replay.engine.address_map cimport Spot
from buddysim.replay.engine.address_map_simd cimport LineLocation
from buddysim.replay.engine.memory cimport (
    MemorySystem, Slice, SmPorts, evict_line, home_load, mshr_take, queue_pass,
)


cdef int partitions_init(MemorySystem* m, dict n) except -1:
    """From the machine's numbers (`parameters.engine_numbers`)."""
    m.partitions, m.far_ps = n["l2_partitions"], n["far_ps"]
    m.partition_sms = (<uint32_t>n["sms"] + m.partitions - 1) / m.partitions
    m.partition_slices = divisor(<int>n["slices"] // <int>n["l2_partitions"])
    if m.partitions > 1:
        m.near_load, m.far_store = near_load, far_store
    return 0


cdef uint32_t partition_of(const MemorySystem* m, const SmPorts* sm) noexcept nogil:
    """An SM's own partition."""
    return <uint32_t>(sm - m.sms) / m.partition_sms


cdef void copy_spot(const MemorySystem* m, uint32_t slice, uint32_t set, uint32_t partition, Spot* spot) noexcept nogil:
    """Where a partition would hold a copy of the line whose home is `slice` and `set`."""
    cdef uint32_t home = divide(m.partition_slices, slice)
    spot.slice = slice + (partition - home) * m.partition_slices.by
    spot.set = set + (spot.slice - slice) * m.l2.sets.by * m.l2.row_bytes


cdef int64_t near_load(MemorySystem* m, const SmPorts* sm, const LineLocation* at, unsigned int wanted, bint for_atomic,
                       int64_t t) noexcept nogil:
    """A load's or atomic's sectors of a line, on their way to a slice at `t`; returns when the SM's own partition has the last."""
    cdef uint32_t own = partition_of(m, sm)
    cdef bint far = divide(m.partition_slices, at.slice) != own
    cdef int64_t there = m.far_ps >> 1 if far else 0, back = m.far_ps - there if far else 0
    cdef Spot home
    if far and not for_atomic:
        return load_through_copy(m, at, wanted, own, t)
    if for_atomic:
        home.slice, home.set = at.slice, at.l2_set
        copies_leave(m, &home, at.entry, wanted)
    t = queue_pass(m, SLICE_PORT, &m.slices[at.slice].port, t + there, sector_count(wanted) * m.slice_cost)
    if m.access != NULL:
        t = m.access(m, at.entry, t)
    return home_load(m, at, wanted, for_atomic, t) + back


cdef int64_t load_through_copy(MemorySystem* m, const LineLocation* at, unsigned int wanted, uint32_t partition,
                               int64_t t) noexcept nogil:
    """A load through a partition that is not the line's home, and keeps what it gets from there."""
    cdef int64_t there = m.far_ps >> 1, back = m.far_ps - there, way, data, done
    cdef int64_t* mshr
    cdef int64_t* ready_ps
    cdef unsigned int line = 0, present, missing, merged
    cdef uint32_t left
    cdef Spot spot
    cdef Slice* near
    cdef Row row
    copy_spot(m, at.slice, at.l2_set, partition, &spot)
    near = &m.slices[spot.slice]
    t = queue_pass(m, SLICE_PORT, &near.port, t, sector_count(wanted) * m.slice_cost)
    if m.access != NULL:
        t = m.access(m, at.entry, t)
    row = cache_row(&m.l2, spot.set)
    way = cache_find(&m.l2, &row, at.entry)
    if way >= 0:
        cache_touch(&m.l2, &row, way)
        line = row.lines[way]
    else:
        way = cache_replace(&m.l2, &row, at.entry, &left)
        t = evict_line(m, near, left, &row, way, t)
        row.lines[way] = 0
    ready_ps = row.ready_ps + way
    data = t
    present = line & wanted
    missing = wanted & ~present
    merged = cache_not_yet(line, ready_ps, t) & present
    if merged:
        data = ready_ps[0]
        m.count.l2_read_merged += sector_count(merged)
    m.count.l2_read_hits += sector_count(present & ~merged)
    if not missing:
        m.count.l2_lines += 1
        m.count.l2_line_hits += 1
        return data
    mshr = mshr_take(&near.mshrs)
    done = larger(t, mshr[0]) + there
    done = queue_pass(m, SLICE_PORT, &m.slices[at.slice].port, done, sector_count(missing) * m.slice_cost)
    done = home_load(m, at, missing, False, done) + back
    mshr[0] = done
    row.lines[way] = cache_coming(line, ready_ps, missing, t, done)
    return larger(data, done)


cdef int64_t far_store(MemorySystem* m, const SmPorts* sm, const LineLocation* at, unsigned int touched) noexcept nogil:
    """What a store takes longer, there and back; its sectors leave all copies."""
    cdef Spot home
    home.slice, home.set = at.slice, at.l2_set
    copies_leave(m, &home, at.entry, touched)
    return m.far_ps if divide(m.partition_slices, at.slice) != partition_of(m, sm) else 0


cdef bint has_copy(const MemorySystem* m, const Spot* home, uint32_t entry) noexcept nogil:
    """Does another partition than its home hold an entry?"""
    cdef uint32_t partition, own = divide(m.partition_slices, home.slice)
    cdef Spot spot
    cdef Row row
    for partition in range(m.partitions):
        if partition != own:
            copy_spot(m, home.slice, home.set, partition, &spot)
            row = cache_row(&m.l2, spot.set)
            if cache_find(&m.l2, &row, entry) >= 0:
                return True
    return False


cdef void copies_leave(const MemorySystem* m, const Spot* home, uint32_t entry, unsigned int sectors) noexcept nogil:
    """Sectors of an entry are no longer valid in the copies of other partitions than its home."""
    cdef uint32_t partition, own = divide(m.partition_slices, home.slice)
    cdef int64_t way
    cdef Spot spot
    cdef Row row
    for partition in range(m.partitions):
        if partition != own:
            copy_spot(m, home.slice, home.set, partition, &spot)
            row = cache_row(&m.l2, spot.set)
            way = cache_find(&m.l2, &row, entry)
            if way >= 0:
                drop_from(m, &row, way, sectors)


cdef int drop_from(const MemorySystem* m, const Row* row, int64_t way, unsigned int sectors) noexcept nogil:
    """Makes a line's sectors invalid; nothing is written back. Returns how many of them were dirty."""
    cdef unsigned int line = row.lines[way], dropped
    dropped = sectors | sectors << DIRTY | sectors << PARTIAL | sectors << COMING
    row.lines[way] = <Line>(line & ~dropped)
    if sectors and not row.lines[way]:
        cache_empty_way(&m.l2, row, way)
    return sector_count(line >> DIRTY & sectors)
