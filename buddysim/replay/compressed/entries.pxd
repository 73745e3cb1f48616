"""Compressed entries: where their sectors are, and what fills and write-backs of them move.

A scheme's state begins with `CompressedEntries`. A scheme whose entries' sizes must be looked up gives its look-up as an
argument, a constant that the compiler resolves; NULL: sizes are known. So `buddy` equals `bandwidth-compression`, cycle for
cycle, if every entry fits its target and the metadata cache is perfect.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t

from buddysim.replay.compressed.compressor cimport CompressorTiming, compressor_done
from buddysim.replay.dram.dram cimport DeviceLocation, dram_idle_ps, dram_location, dram_prefetch, dram_read_dry_run
from buddysim.replay.dram.transfers cimport device_fetch, device_read, device_write
from buddysim.replay.link.transfers cimport link_read, link_write
from buddysim.replay.memory.address_map cimport locate_entry
from buddysim.replay.memory.memory cimport AllocationState, MemorySystem, Slice
from buddysim.replay.primitives.address_map_simd cimport LineLocation
from buddysim.replay.primitives.cache cimport DIRTY, Line, sector_count
from buddysim.replay.primitives.compiler_hints cimport unlikely
from buddysim.replay.primitives.extremes cimport max_i64
from buddysim.replay.primitives.kinds cimport (
    DEMAND, OVERFETCH, READ_MODIFY_WRITE, SECTOR_BYTES, WRITEBACK, sectors_needed,
)

# Where the sectors of a compressed entry are stored.
cdef struct SectorSplit:
    int device
    int buddy

# Sectors that a fill of a compressed entry moves.
cdef struct FillPlan:
    uint8_t early_sectors          # from device memory, needed, requested as soon as the fill may begin
    uint8_t misspeculated_sectors  # from device memory, fetched before the size is known and not needed
    uint8_t late_sectors           # from device memory, requested once the size shows that they are needed
    uint8_t demand                 # of early and late sectors: as many as the miss requested
    uint8_t overfetch              # early and late sectors beyond `demand`
    uint8_t buddy                  # from buddy memory
    uint8_t filled_mask            # sectors that the L2 holds after the fill
    uint8_t decompressed           # 1: the fill passes the decompressor

cdef struct CompressedCounters:
    int64_t buddy_fills
    int64_t buddy_writebacks
    int64_t class_increases       # write-backs after which the metadata encode a larger size
    int64_t class_decreases
    int64_t speculative_fills     # fills that fetched device sectors before the entry's size was known
    int64_t misspeculated_fills   # speculative fills that requested a sector in excess
    int64_t misspeculated_sectors  # sectors fetched in excess
    int64_t cancelled_sectors     # sectors requested in excess, and cancelled before device memory read them

# Of one run; the scheme's state (`m.scheme_state`) begins with it.
cdef struct CompressedEntries:
    CompressorTiming compressor
    bint fetch_whole_raw_entry     # fills of entries stored raw fetch all four sectors
    bint single_raw_sectors        # entries that overflow their target are stored raw, too
    bint eight_byte_class          # metadata distinguish entries of 8 B
    bint cancel_misspeculated      # device reads that have not begun are cancelled once the size shows they are not needed
    CompressedCounters count
    SectorSplit[40] splits         # [device sectors of the target: 0 to 4][size class]
    FillPlan[1280] plans           # [size known][device sectors of the target][requested mask][size class]

cdef struct SizeLookup:
    int64_t known_ps        # the entry's size is known
    int64_t fetch_begin_ps  # a fill may begin; before known_ps if it is speculative
    bint speculative        # the fill fetches device sectors before the size is known

# Looks an entry's size up at `t`; `write`: and changes it. `at` is NULL if the entry has not been located.
ctypedef SizeLookup (*SizeOp)(MemorySystem* m, uint32_t entry, const LineLocation* at, bint write, int64_t t) noexcept nogil


cdef inline SectorSplit sector_split(const CompressedEntries* entries, int device_sectors, int size_class) noexcept nogil:
    """Device and buddy sectors of an entry. With a 16x target (0), more than 8 B also take a device sector."""
    cdef int needed = sectors_needed(size_class)
    cdef SectorSplit split
    if device_sectors == 0:
        if size_class == 0:
            return SectorSplit(0, 0)
        return SectorSplit(1, 0 if size_class == 1 and entries.eight_byte_class else needed)
    split.device = needed if needed < device_sectors else device_sectors
    split.buddy = needed - split.device
    return split


cdef inline bint stored_raw(const CompressedEntries* entries, int device_sectors, int size_class) noexcept nogil:
    """Whether an entry is stored raw, so that its sectors can be accessed one by one."""
    return size_class == 7 and not entries.fetch_whole_raw_entry and (device_sectors == 4 or entries.single_raw_sectors)


cdef inline SectorSplit raw_split(int device_sectors, unsigned int sectors) noexcept nogil:
    """Device and buddy sectors in which sectors of a raw entry lie: the first ones in device memory.

    With a 16x target, device memory has 8 B of sector 0.
    """
    cdef int device
    if device_sectors == 0:
        return SectorSplit(sectors & 1, sector_count(sectors))
    device = sector_count(sectors & ((1 << device_sectors) - 1))
    return SectorSplit(device, sector_count(sectors) - device)


cdef inline FillPlan plan_fill(const CompressedEntries* entries, bint size_known, int device_sectors,
                               unsigned int requested, int size_class) noexcept nogil:
    """Sectors that a fill moves. A speculative fill fetches device sectors as if the entry fills its target.

    Of a raw entry, all of them are data that the L2 can hold, unless they are 8 B.
    """
    cdef bint raw = stored_raw(entries, device_sectors, size_class)
    cdef SectorSplit split = raw_split(device_sectors, requested) if raw else sector_split(entries, device_sectors, size_class)
    cdef int n_requested = sector_count(requested), device = split.device
    cdef int speculative = device, useful = device, demand = min(device, n_requested)
    if not size_known:
        speculative = n_requested if device_sectors == 4 else device_sectors if device_sectors else 1
        if raw and 0 < device_sectors < 4:
            device = device_sectors
            requested |= (1 << device_sectors) - 1
        useful = min(device, speculative)
        if device_sectors == 4 and not raw:
            useful = sector_count(requested & ((1 << device) - 1))
    return FillPlan(
        <uint8_t>useful, <uint8_t>(speculative - useful), <uint8_t>(device - useful), <uint8_t>demand,
        <uint8_t>(device - demand), <uint8_t>split.buddy, <uint8_t>(requested if raw else 15), not raw)


cdef inline FillPlan* plan_at(CompressedEntries* entries, bint size_known, int device_sectors, unsigned int requested,
                              int size_class) noexcept nogil:
    """The plan of one kind of fill."""
    return &entries.plans[((size_known * 5 + device_sectors) * 16 + requested) * 8 + size_class]


cdef inline int size_rank(const CompressedEntries* entries, int size_class) noexcept nogil:
    """Rank of a size class among the sizes that the metadata encode: 0 B, 8 B, one to four sectors."""
    if size_class == 1 and entries.eight_byte_class:
        return 1
    return 0 if size_class == 0 else sectors_needed(size_class) + 1


cdef inline void fetch_misspeculated(MemorySystem* m, CompressedEntries* entries, const DeviceLocation* location, int sectors,
                                     const SizeLookup* size) noexcept nogil:
    """Fetches the misspeculated sectors of a fill. No access waits for them; reads that have not begun may be cancelled."""
    cdef int i, fetched = sectors
    cdef DeviceLocation copy
    entries.count.misspeculated_fills += 1
    if entries.cancel_misspeculated:
        for i in range(sectors):
            copy = location[0]      # as `device_fetch` does
            if dram_read_dry_run(&m.dram, &copy, 1, size.fetch_begin_ps) - dram_idle_ps(&m.dram, 1) >= size.known_ps:
                fetched = i
                break
            device_read(&m.dram, &m.waits, location, 1, OVERFETCH, size.fetch_begin_ps)
        entries.count.cancelled_sectors += sectors - fetched
    else:
        device_read(&m.dram, &m.waits, location, sectors, OVERFETCH, size.fetch_begin_ps)
    entries.count.misspeculated_sectors += fetched


cdef inline int64_t compressed_fill(MemorySystem* m, AllocationState* allocation, Slice* slice, const LineLocation* at,
                                    unsigned int* sectors, int64_t t, int device_sectors, SizeOp look_up) noexcept nogil:
    """Fills a line: device and buddy sectors in parallel, then the decompressor."""
    cdef int64_t done
    cdef int demand, buddy_demand, requested = sector_count(sectors[0])
    cdef unsigned int sectors_if_raw
    cdef CompressedEntries* entries = <CompressedEntries*>m.scheme_state
    cdef SizeLookup size = SizeLookup(t, t, False)
    cdef const FillPlan* plan
    cdef DeviceLocation location
    dram_location(&m.dram, at.bank, at.row, &location)
    dram_prefetch(&location)
    if look_up != NULL:
        size = look_up(m, at.entry, at, False, t)
        entries.count.speculative_fills += size.speculative
    sectors_if_raw = sectors[0] | m.l2.extra_fetch_mask
    plan = plan_at(entries, not size.speculative, device_sectors, sectors_if_raw, m.entry_classes[at.entry] & 7)
    done = size.fetch_begin_ps
    if plan.early_sectors:
        done = device_fetch(&m.dram, &m.waits, &location, plan.early_sectors, done)
    if unlikely(plan.misspeculated_sectors):
        fetch_misspeculated(m, entries, &location, plan.misspeculated_sectors, &size)
    if unlikely(plan.late_sectors):
        done = max_i64(done, device_fetch(&m.dram, &m.waits, &location, plan.late_sectors, size.known_ps))
    done = max_i64(done, size.known_ps)
    demand = min(plan.demand, requested)
    location.channel.moved[<int>DEMAND] += demand
    location.channel.moved[<int>OVERFETCH] += plan.demand + plan.overfetch - demand
    if plan.buddy:
        buddy_demand = min(requested - demand, plan.buddy)
        m.link.read_payload[<int>OVERFETCH] += SECTOR_BYTES * (plan.buddy - buddy_demand)
        m.link.read_payload[<int>DEMAND] -= SECTOR_BYTES * (plan.buddy - buddy_demand)
        done = max_i64(done, link_read(&m.link, &m.waits, SECTOR_BYTES * plan.buddy, DEMAND, size.known_ps))
        entries.count.buddy_fills += 1
        allocation.overflow_accesses += 1
    sectors[0] = plan.filled_mask
    return compressor_done(m, &entries.compressor, slice, done) if plan.decompressed else done


cdef inline int64_t written_back_ps(const MemorySystem* m, int64_t start_ps, int64_t ready_ps, int64_t accepted_ps) noexcept nogil:
    """When a write-back ends: memory has accepted what was ready at `ready_ps`.

    Without `l2.writeback_buffer` a victim buffer without a limit hides the look-up, read, merge and compression before.
    """
    return accepted_ps if m.l2.buffers_writebacks else start_ps + accepted_ps - ready_ps


cdef inline int64_t compressed_writeback(MemorySystem* m, AllocationState* allocation, Slice* slice, uint32_t entry, Line line,
                                         int new_class, int64_t t, int device_sectors, SizeOp look_up) noexcept nogil:
    """Writes an entry back: reads the sectors that the line lacks, compresses, writes device and buddy sectors.

    The size class of the entry becomes `new_class`.

    Returns the time at which the line's way or its slot in the write-back buffer is free (`written_back_ps`).
    """
    cdef CompressedEntries* entries = <CompressedEntries*>m.scheme_state
    cdef int old_class = m.entry_classes[entry] & 7
    cdef SectorSplit old = entries.splits[8 * device_sectors + old_class]
    cdef SectorSplit new = entries.splits[8 * device_sectors + new_class]
    cdef int rank_change = size_rank(entries, new_class) - size_rank(entries, old_class)
    cdef bint raw = stored_raw(entries, device_sectors, old_class), stays_raw = raw and new_class == 7, buddy
    cdef int64_t arrival_ps, start_ps = t, accepted_ps
    cdef DeviceLocation location
    locate_entry(m, slice, entry, &location)
    if look_up != NULL:
        t = look_up(m, entry, NULL, rank_change != 0, t).known_ps
    if stays_raw:                       # its dirty sectors are written, as without compression
        new = raw_split(device_sectors, line >> DIRTY & 15)
    buddy = new.buddy > 0
    if not stays_raw and line & 15 != 15:
        if raw:
            old = raw_split(device_sectors, 15 & ~<unsigned int>line)
        arrival_ps = t
        if old.device:
            arrival_ps = device_read(&m.dram, &m.waits, &location, old.device, READ_MODIFY_WRITE, t)
        if old.buddy:
            arrival_ps = max_i64(arrival_ps, link_read(&m.link, &m.waits, SECTOR_BYTES * old.buddy, READ_MODIFY_WRITE, t))
            buddy = True
        t = arrival_ps if raw else compressor_done(m, &entries.compressor, slice, arrival_ps)
    if not stays_raw:
        t = compressor_done(m, &entries.compressor, slice, t)
    accepted_ps = t
    if new.device:
        accepted_ps = device_write(&m.dram, &m.waits, &location, new.device, WRITEBACK, t)
    if new.buddy:
        accepted_ps = max_i64(accepted_ps, link_write(&m.link, &m.waits, SECTOR_BYTES * new.buddy, WRITEBACK, t))
    if buddy:
        entries.count.buddy_writebacks += 1
        allocation.overflow_accesses += 1
    if rank_change > 0:
        entries.count.class_increases += 1
    elif rank_change < 0:
        entries.count.class_decreases += 1
    m.entry_classes[entry] = <uint8_t>(m.entry_classes[entry] & 0xF0 | new_class)
    return written_back_ps(m, start_ps, t, accepted_ps)


cdef int entries_init(CompressedEntries* entries, dict n) except -1
cdef dict entries_counters(const CompressedEntries* entries)
