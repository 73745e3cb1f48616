"""Fills and write-backs of compressed entries: what the schemes `bandwidth-compression` and `buddy` share.

`bandwidth-compression` is the case of four kept sectors and free metadata; so where every entry fits its target and metadata are free,
`buddy` equals `bandwidth-compression`, cycle for cycle.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t

from buddysim.replay.engine.cache cimport (
    DIRTY, Line, Row, cache_find, cache_replace, cache_row, cache_touch, sector_count,
)
from buddysim.replay.engine.division cimport divide
from buddysim.replay.engine.dram cimport (
    DeviceLocation, dram_idle_ps, dram_location, dram_prefetch, dram_would_read, larger,
)
from buddysim.replay.engine.compiler_hints cimport likely, prefetch, unlikely
from buddysim.replay.engine.kinds cimport (
    COMPRESSOR, DEMAND, METADATA_PORT, METADATA_READ, METADATA_WRITE, OVERFETCH, READ_MODIFY_WRITE, SECTOR_BYTES, WRITEBACK,
    sectors_needed,
)
from buddysim.replay.engine.address_map cimport locate_entry, locate_metadata, metadata_set
from buddysim.replay.engine.memory cimport (
    FillPlan, MemorySystem, Region, Slice, Split, count_wait, device_fetch, device_read, device_write, link_read, link_write,
    queue_pass,
)
from buddysim.replay.engine.address_map_simd cimport LineLocation
from buddysim.replay.engine.port cimport port_turn


cdef inline Split split_entry(const MemorySystem* m, int kept, int size_class) noexcept nogil:
    """Device and buddy sectors of an entry. A 16x entry (kept 0) that outgrows its 8 B also costs one device sector."""
    cdef int needed = sectors_needed(size_class)
    cdef Split split
    if kept == 0:
        if size_class == 0:
            return Split(0, 0)
        return Split(1, 0 if size_class == 1 and m.eight_byte_state else needed)
    split.device = needed if needed < kept else kept
    split.buddy = needed - split.device
    return split


cdef inline bint stored_raw(const MemorySystem* m, int kept, int size_class) noexcept nogil:
    """Is an entry stored uncompressed in device memory, sector by sector?"""
    return size_class == 7 and kept == 4 and not m.whole_raw_entry


cdef inline FillPlan plan_fill(const MemorySystem* m, bint size_known, int kept, unsigned int wanted,
                               int size_class) noexcept nogil:
    """What a fill moves. Before the size is known, the device part is fetched on the guess that the entry fills it."""
    cdef Split split = split_entry(m, kept, size_class)
    cdef bint raw = stored_raw(m, kept, size_class)
    cdef int asked = sector_count(wanted), device = asked if raw else split.device
    cdef int guessed = device, useful = device, demand = min(device, asked)
    if not size_known:
        guessed = asked if kept == 4 else kept if kept else 1
        useful = min(device, guessed)
        if kept == 4 and not raw:
            useful = sector_count(wanted & ((1 << device) - 1))
    return FillPlan(
        <uint8_t>useful, <uint8_t>(guessed - useful), <uint8_t>(device - useful), <uint8_t>demand,
        <uint8_t>(device - demand), <uint8_t>split.buddy, <uint8_t>(wanted if raw else 15), not raw)


cdef inline FillPlan* plan_at(MemorySystem* m, bint size_known, int kept, unsigned int wanted, int size_class) noexcept nogil:
    """The plan of a kind of fill."""
    return &m.plans[((size_known * 5 + kept) * 16 + wanted) * 8 + size_class]


cdef inline void prepare_moves(MemorySystem* m) noexcept nogil:
    """Tabulates where the sectors of every kind of entry lie, and what every kind of fill moves."""
    cdef int size_known, kept, size_class
    cdef unsigned int wanted
    for kept in range(5):
        for size_class in range(8):
            m.splits[8 * kept + size_class] = split_entry(m, kept, size_class)
            for size_known in range(2):
                for wanted in range(16):
                    plan_at(m, size_known, kept, wanted, size_class)[0] = plan_fill(m, size_known, kept, wanted, size_class)


cdef inline int size_state(const MemorySystem* m, int size_class) noexcept nogil:
    """An entry's size as metadata encode it, in rising order: 0 B, 8 B, one to four sectors."""
    if size_class == 1 and m.eight_byte_state:
        return 1
    return 0 if size_class == 0 else sectors_needed(size_class) + 1


cdef inline int64_t codec_done(MemorySystem* m, Slice* slice, int64_t t) noexcept nogil:
    """When an entry that reaches a slice's (de)compressor at `t` has passed it."""
    m.at_codec_ps = t
    return queue_pass(m, COMPRESSOR, &slice.codec, t, m.codec_cost) + m.codec_ps


cdef struct MetadataLookup:
    int64_t known_ps            # when the entry's size is known
    int64_t begin_ps            # when a fill begins: then, or, where it guesses, as soon as it knows that the cache can't tell
    bint guess                  # does it guess what it needs of device memory?


cdef inline MetadataLookup metadata_lookup(MemorySystem* m, uint32_t entry, const LineLocation* at, bint write,
                                           int64_t t) noexcept nogil:
    """Looks an entry's size up at `t`; `write` changes it. `at` is NULL where the entry has not been located."""
    cdef uint32_t line = entry >> m.metadata_shift, left, set
    cdef int64_t way, known_ps, turn
    cdef DeviceLocation location, victim
    cdef Row row
    cdef bint guess = False
    if m.perfect_metadata:
        return MetadataLookup(t, t, False)
    set = at.metadata_set if at else metadata_set(m, line)
    row = cache_row(&m.metadata, set)
    turn = port_turn(&m.metadata_ports[divide(m.metadata_unit, set)].port, &m.now_ps, t, m.metadata_cost)
    if unlikely(turn > t):              # a branch: for a CPU that predicts it the port is not in the chain of times
        count_wait(m, METADATA_PORT, turn - t)
        t = turn
    t += m.metadata_ps
    way = cache_find(&m.metadata, &row, line)
    if way >= 0:
        cache_touch(&m.metadata, &row, way)
        known_ps = row.ready_ps[way]
        if known_ps <= t:
            m.count.metadata_hits += 1
            known_ps = t
        else:
            m.count.metadata_merged += 1
            guess = m.guess_on_merged
    else:
        if at:
            dram_location(&m.dram, at.metadata_bank, at.metadata_row, &location)
        else:
            locate_metadata(m, line, &location)
        dram_prefetch(&location)
        way = cache_replace(&m.metadata, &row, line, &left)
        prefetch(row.ready_ps + way)
        if row.lines[way]:                  # dirty: no other state is kept
            locate_metadata(m, left, &victim)
            device_write(m, &victim, m.metadata_sectors, METADATA_WRITE, larger(t, row.ready_ps[way]))
            row.lines[way] = 0
        if likely(m.metadata_sectors == 1):     # compiled without a loop over bursts
            known_ps = device_read(m, &location, 1, METADATA_READ, t)
        else:
            known_ps = device_read(m, &location, m.metadata_sectors, METADATA_READ, t)
        row.ready_ps[way] = known_ps
        guess = m.guess_on_miss
    if write:
        row.lines[way] = 1 << DIRTY
    return MetadataLookup(known_ps, t if guess else known_ps, guess)


cdef inline void fetch_in_vain(MemorySystem* m, const DeviceLocation* location, int sectors,
                               const MetadataLookup* size) noexcept nogil:
    """Fetches what a guess asks for that is not needed: nothing waits for it. What has not begun may be cancelled."""
    cdef int i, fetched = sectors
    cdef DeviceLocation copy
    m.count.wrong_guesses += 1
    if m.cancel_guesses:
        for i in range(sectors):
            copy = location[0]      # as in `device_fetch`
            if dram_would_read(&m.dram, &copy, 1, size.begin_ps) - dram_idle_ps(&m.dram, 1) >= size.known_ps:
                fetched = i
                break
            device_read(m, location, 1, OVERFETCH, size.begin_ps)
        m.count.cancelled_sectors += sectors - fetched
    else:
        device_read(m, location, sectors, OVERFETCH, size.begin_ps)
    m.count.wasted_sectors += fetched


cdef inline int64_t compressed_fill(MemorySystem* m, Region* region, Slice* slice, const LineLocation* at,
                                    unsigned int* sectors, int64_t t, int kept, bint sizes_known) noexcept nogil:
    """Fetches a line to the L2: the device part and the buddy part in parallel, then through the decompressor."""
    cdef int64_t done
    cdef int buddy_demand
    cdef MetadataLookup size = MetadataLookup(t, t, False)
    cdef const FillPlan* plan
    cdef DeviceLocation location
    dram_location(&m.dram, at.bank, at.row, &location)
    dram_prefetch(&location)
    if not sizes_known:
        size = metadata_lookup(m, at.entry, at, False, t)
        m.count.guessed_fills += size.guess
    plan = plan_at(m, not size.guess, kept, sectors[0], m.state[at.entry] & 7)
    done = device_fetch(m, &location, plan.at_once, size.begin_ps) if plan.at_once else size.begin_ps
    if unlikely(plan.wasted):
        fetch_in_vain(m, &location, plan.wasted, &size)
    if unlikely(plan.later):
        done = larger(done, device_fetch(m, &location, plan.later, size.known_ps))
    done = larger(done, size.known_ps)
    location.channel.moved[<int>DEMAND] += plan.demand
    location.channel.moved[<int>OVERFETCH] += plan.overfetch
    if plan.buddy:
        buddy_demand = min(sector_count(sectors[0]) - plan.demand, plan.buddy)
        m.count.link_read[<int>OVERFETCH] += SECTOR_BYTES * (plan.buddy - buddy_demand)
        m.count.link_read[<int>DEMAND] -= SECTOR_BYTES * (plan.buddy - buddy_demand)
        done = larger(done, link_read(m, SECTOR_BYTES * plan.buddy, DEMAND, size.known_ps))
        m.count.buddy_fills += 1
        region.buddy += 1
    sectors[0] = plan.filled
    return codec_done(m, slice, done) if plan.decompressed else done


cdef inline int64_t compressed_writeback(MemorySystem* m, Region* region, Slice* slice, uint32_t entry, Line line, int new_class,
                                         int64_t t, int kept, bint sizes_known) noexcept nogil:
    """Writes an entry back: reads what the line lacks, compresses, writes the device part and what overflows.

    Its size class is `new_class` from now on.

    Returns when the line's way is free: its data are in the compressor and the writes have been accepted.
    """
    cdef int old_class = m.state[entry] & 7
    cdef Split old = m.splits[8 * kept + old_class]
    cdef Split new = m.splits[8 * kept + new_class]
    cdef int change = size_state(m, new_class) - size_state(m, old_class)
    cdef bint raw = stored_raw(m, kept, old_class)
    cdef int sectors
    cdef int64_t arrived, began = t, taken
    cdef bint buddy = new.buddy > 0
    cdef DeviceLocation location
    locate_entry(m, slice, entry, &location)
    if not sizes_known:
        t = metadata_lookup(m, entry, NULL, change != 0, t).known_ps
    if line & 15 != 15:
        sectors = sector_count(15 & ~<unsigned int>line) if raw else old.device
        arrived = t
        if sectors:
            arrived = device_read(m, &location, sectors, READ_MODIFY_WRITE, t)
        if old.buddy:
            arrived = larger(arrived, link_read(m, SECTOR_BYTES * old.buddy, READ_MODIFY_WRITE, t))
            buddy = True
        t = arrived if raw else codec_done(m, slice, arrived)
    t = taken = codec_done(m, slice, t)
    sectors = sector_count(line >> DIRTY) if raw and new_class == 7 else new.device
    if sectors:
        taken = device_write(m, &location, sectors, WRITEBACK, t)
    if new.buddy:
        taken = larger(taken, link_write(m, SECTOR_BYTES * new.buddy, WRITEBACK, t))
    if buddy:
        m.count.buddy_writebacks += 1
        region.buddy += 1
    if change > 0:
        m.count.grown += 1
    elif change < 0:
        m.count.shrunk += 1
    m.state[entry] = <uint8_t>(m.state[entry] & 0xF0 | new_class)
    return began + taken - t        # a victim buffer holds the line while it is read, merged and compressed
