"""Fills and write-backs of compressed entries, for the schemes `bandwidth-compression` and `buddy`.

`bandwidth-compression` is the case of four device sectors and known sizes. So `buddy` equals it, cycle for cycle, if every
entry fits its target and the metadata cache is perfect.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t

from buddysim.replay.engine.cache cimport (
    DIRTY, Line, CacheSet, cache_find, cache_replace, cache_set, cache_touch, sector_count,
)
from buddysim.replay.engine.division cimport divide
from buddysim.replay.engine.dram cimport (
    DeviceLocation, dram_idle_ps, dram_location, dram_prefetch, dram_read_dry_run, max_i64,
)
from buddysim.replay.engine.compiler_hints cimport likely, prefetch, unlikely
from buddysim.replay.engine.kinds cimport (
    COMPRESSOR, DEMAND, METADATA_PORT, METADATA_READ, METADATA_WRITE, OVERFETCH, READ_MODIFY_WRITE, SECTOR_BYTES, WRITEBACK,
    sectors_needed,
)
from buddysim.replay.engine.address_map cimport locate_entry, locate_metadata, metadata_set
from buddysim.replay.engine.memory cimport (
    AllocationState, FillPlan, MemorySystem, SectorSplit, Slice, count_wait, device_fetch, device_read, device_write, link_read,
    link_write, port_transfer_counted,
)
from buddysim.replay.engine.address_map_simd cimport LineLocation
from buddysim.replay.engine.port cimport port_grant_time


cdef inline SectorSplit sector_split(const MemorySystem* m, int device_sectors, int size_class) noexcept nogil:
    """Device and buddy sectors of an entry. With a 16x target (0), more than 8 B also take a device sector."""
    cdef int needed = sectors_needed(size_class)
    cdef SectorSplit split
    if device_sectors == 0:
        if size_class == 0:
            return SectorSplit(0, 0)
        return SectorSplit(1, 0 if size_class == 1 and m.eight_byte_class else needed)
    split.device = needed if needed < device_sectors else device_sectors
    split.buddy = needed - split.device
    return split


cdef inline bint stored_raw(const MemorySystem* m, int device_sectors, int size_class) noexcept nogil:
    """Whether an entry is stored raw in device memory, so that its sectors can be accessed one by one."""
    return size_class == 7 and device_sectors == 4 and not m.fetch_whole_raw_entry


cdef inline FillPlan plan_fill(const MemorySystem* m, bint size_known, int device_sectors, unsigned int requested,
                               int size_class) noexcept nogil:
    """Sectors that a fill moves. A speculative fill fetches device sectors as if the entry fills its target."""
    cdef SectorSplit split = sector_split(m, device_sectors, size_class)
    cdef bint raw = stored_raw(m, device_sectors, size_class)
    cdef int n_requested = sector_count(requested), device = n_requested if raw else split.device
    cdef int speculative = device, useful = device, demand = min(device, n_requested)
    if not size_known:
        speculative = n_requested if device_sectors == 4 else device_sectors if device_sectors else 1
        useful = min(device, speculative)
        if device_sectors == 4 and not raw:
            useful = sector_count(requested & ((1 << device) - 1))
    return FillPlan(
        <uint8_t>useful, <uint8_t>(speculative - useful), <uint8_t>(device - useful), <uint8_t>demand,
        <uint8_t>(device - demand), <uint8_t>split.buddy, <uint8_t>(requested if raw else 15), not raw)


cdef inline FillPlan* plan_at(MemorySystem* m, bint size_known, int device_sectors, unsigned int requested,
                              int size_class) noexcept nogil:
    """The plan of one kind of fill."""
    return &m.plans[((size_known * 5 + device_sectors) * 16 + requested) * 8 + size_class]


cdef inline void tabulate_plans(MemorySystem* m) noexcept nogil:
    """Tabulates `sector_split` and `plan_fill` for all arguments."""
    cdef int size_known, device_sectors, size_class
    cdef unsigned int requested
    for device_sectors in range(5):
        for size_class in range(8):
            m.splits[8 * device_sectors + size_class] = sector_split(m, device_sectors, size_class)
            for size_known in range(2):
                for requested in range(16):
                    plan_at(m, size_known, device_sectors, requested, size_class)[0] = plan_fill(
                        m, size_known, device_sectors, requested, size_class)


cdef inline int size_rank(const MemorySystem* m, int size_class) noexcept nogil:
    """Rank of a size class among the sizes that the metadata encode: 0 B, 8 B, one to four sectors."""
    if size_class == 1 and m.eight_byte_class:
        return 1
    return 0 if size_class == 0 else sectors_needed(size_class) + 1


cdef inline int64_t compressor_done(MemorySystem* m, Slice* slice, int64_t t) noexcept nogil:
    """Time at which an entry that reaches a slice's compressor or decompressor at `t` leaves it."""
    m.last_compressor_ps = t
    return port_transfer_counted(m, COMPRESSOR, &slice.compressor, t, m.compressor_cost) + m.compressor_ps


cdef struct MetadataLookup:
    int64_t known_ps        # the entry's size is known
    int64_t fetch_begin_ps  # a fill may begin; before known_ps if it is speculative
    bint speculative        # the fill fetches device sectors before the size is known


cdef inline MetadataLookup metadata_lookup(MemorySystem* m, uint32_t entry, const LineLocation* at, bint write,
                                           int64_t t) noexcept nogil:
    """Looks up an entry's size at `t`; `write` changes it. `at` is NULL if the entry has not been located."""
    cdef uint32_t line = entry >> m.metadata_shift, evicted_line, set_offset
    cdef int64_t way, known_ps, grant_ps
    cdef DeviceLocation location, victim
    cdef CacheSet set
    cdef bint speculative = False
    if m.perfect_metadata:
        return MetadataLookup(t, t, False)
    set_offset = at.metadata_set if at else metadata_set(m, line)
    set = cache_set(&m.metadata, set_offset)
    grant_ps = port_grant_time(&m.metadata_ports[divide(m.metadata_unit, set_offset)].port, &m.horizon, t, m.metadata_cost)
    if unlikely(grant_ps > t):              # a branch, so that a CPU that predicts it need not wait for the port
        count_wait(m, METADATA_PORT, grant_ps - t)
        t = grant_ps
    t += m.metadata_ps
    way = cache_find(&m.metadata, &set, line)
    if way >= 0:
        cache_touch(&m.metadata, &set, way)
        known_ps = set.ready_ps[way]
        if known_ps <= t:
            m.count.metadata_hits += 1
            known_ps = t
        else:
            m.count.metadata_mshr_merges += 1
            speculative = m.speculate_on_pending
    else:
        if at:
            dram_location(&m.dram, at.metadata_bank, at.metadata_row, &location)
        else:
            locate_metadata(m, line, &location)
        dram_prefetch(&location)
        way = cache_replace(&m.metadata, &set, line, &evicted_line)
        prefetch(set.ready_ps + way)
        if set.lines[way]:                  # dirty; metadata lines have no other state
            locate_metadata(m, evicted_line, &victim)
            device_write(m, &victim, m.metadata_sectors, METADATA_WRITE, max_i64(t, set.ready_ps[way]))
            set.lines[way] = 0
        if likely(m.metadata_sectors == 1):     # without a loop over bursts
            known_ps = device_read(m, &location, 1, METADATA_READ, t)
        else:
            known_ps = device_read(m, &location, m.metadata_sectors, METADATA_READ, t)
        set.ready_ps[way] = known_ps
        speculative = m.speculate_on_miss
    if write:
        set.lines[way] = 1 << DIRTY
    return MetadataLookup(known_ps, t if speculative else known_ps, speculative)


cdef inline void fetch_misspeculated(MemorySystem* m, const DeviceLocation* location, int sectors,
                                     const MetadataLookup* size) noexcept nogil:
    """Fetches the misspeculated sectors of a fill. No access waits for them; reads that have not begun may be cancelled."""
    cdef int i, fetched = sectors
    cdef DeviceLocation copy
    m.count.misspeculated_fills += 1
    if m.cancel_misspeculated:
        for i in range(sectors):
            copy = location[0]      # as `device_fetch` does
            if dram_read_dry_run(&m.dram, &copy, 1, size.fetch_begin_ps) - dram_idle_ps(&m.dram, 1) >= size.known_ps:
                fetched = i
                break
            device_read(m, location, 1, OVERFETCH, size.fetch_begin_ps)
        m.count.cancelled_sectors += sectors - fetched
    else:
        device_read(m, location, sectors, OVERFETCH, size.fetch_begin_ps)
    m.count.misspeculated_sectors += fetched


cdef inline int64_t compressed_fill(MemorySystem* m, AllocationState* allocation, Slice* slice, const LineLocation* at,
                                    unsigned int* sectors, int64_t t, int device_sectors, bint sizes_known) noexcept nogil:
    """Fills a line: device and buddy sectors in parallel, then the decompressor."""
    cdef int64_t done
    cdef int demand, buddy_demand, requested = sector_count(sectors[0])
    cdef MetadataLookup size = MetadataLookup(t, t, False)
    cdef const FillPlan* plan
    cdef DeviceLocation location
    dram_location(&m.dram, at.bank, at.row, &location)
    dram_prefetch(&location)
    if not sizes_known:
        size = metadata_lookup(m, at.entry, at, False, t)
        m.count.speculative_fills += size.speculative
    sectors[0] |= m.extra_fetch_mask        # if the entry turns out to be stored raw
    plan = plan_at(m, not size.speculative, device_sectors, sectors[0], m.entry_classes[at.entry] & 7)
    done = device_fetch(m, &location, plan.early_sectors, size.fetch_begin_ps) if plan.early_sectors else size.fetch_begin_ps
    if unlikely(plan.misspeculated_sectors):
        fetch_misspeculated(m, &location, plan.misspeculated_sectors, &size)
    if unlikely(plan.late_sectors):
        done = max_i64(done, device_fetch(m, &location, plan.late_sectors, size.known_ps))
    done = max_i64(done, size.known_ps)
    demand = min(plan.demand, requested)
    location.channel.moved[<int>DEMAND] += demand
    location.channel.moved[<int>OVERFETCH] += plan.demand + plan.overfetch - demand
    if plan.buddy:
        buddy_demand = min(requested - demand, plan.buddy)
        m.count.link_read[<int>OVERFETCH] += SECTOR_BYTES * (plan.buddy - buddy_demand)
        m.count.link_read[<int>DEMAND] -= SECTOR_BYTES * (plan.buddy - buddy_demand)
        done = max_i64(done, link_read(m, SECTOR_BYTES * plan.buddy, DEMAND, size.known_ps))
        m.count.buddy_fills += 1
        allocation.buddy += 1
    sectors[0] = plan.filled_mask
    return compressor_done(m, slice, done) if plan.decompressed else done


cdef inline int64_t compressed_writeback(MemorySystem* m, AllocationState* allocation, Slice* slice, uint32_t entry, Line line,
                                         int new_class, int64_t t, int device_sectors, bint sizes_known) noexcept nogil:
    """Writes an entry back: reads the sectors that the line lacks, compresses, writes device and buddy sectors.

    The size class of the entry becomes `new_class`.

    Returns the time at which the line's way is free: its data are in the compressor, and memory has accepted the writes.
    """
    cdef int old_class = m.entry_classes[entry] & 7
    cdef SectorSplit old = m.splits[8 * device_sectors + old_class]
    cdef SectorSplit new = m.splits[8 * device_sectors + new_class]
    cdef int rank_change = size_rank(m, new_class) - size_rank(m, old_class)
    cdef bint raw = stored_raw(m, device_sectors, old_class)
    cdef int sectors
    cdef int64_t arrival_ps, start_ps = t, accepted_ps
    cdef bint buddy = new.buddy > 0
    cdef DeviceLocation location
    locate_entry(m, slice, entry, &location)
    if not sizes_known:
        t = metadata_lookup(m, entry, NULL, rank_change != 0, t).known_ps
    if raw and new_class == 7:          # it stays raw: its dirty sectors are written, as without compression
        return start_ps + device_write(m, &location, sector_count(line >> DIRTY), WRITEBACK, t) - t
    if line & 15 != 15:
        sectors = sector_count(15 & ~<unsigned int>line) if raw else old.device
        arrival_ps = t
        if sectors:
            arrival_ps = device_read(m, &location, sectors, READ_MODIFY_WRITE, t)
        if old.buddy:
            arrival_ps = max_i64(arrival_ps, link_read(m, SECTOR_BYTES * old.buddy, READ_MODIFY_WRITE, t))
            buddy = True
        t = arrival_ps if raw else compressor_done(m, slice, arrival_ps)
    t = accepted_ps = compressor_done(m, slice, t)
    if new.device:
        accepted_ps = device_write(m, &location, new.device, WRITEBACK, t)
    if new.buddy:
        accepted_ps = max_i64(accepted_ps, link_write(m, SECTOR_BYTES * new.buddy, WRITEBACK, t))
    if buddy:
        m.count.buddy_writebacks += 1
        allocation.buddy += 1
    if rank_change > 0:
        m.count.class_increases += 1
    elif rank_change < 0:
        m.count.class_decreases += 1
    m.entry_classes[entry] = <uint8_t>(m.entry_classes[entry] & 0xF0 | new_class)
    return start_ps + accepted_ps - t        # a victim buffer holds the line during read, merge and compression
