"""Set-up of the memory system, input queues of the crossbar, and rare operations."""
from buddysim.replay.engine.arena cimport arena_zeroed
from buddysim.replay.engine.cache cimport cache_empty_way, cache_init
from buddysim.replay.engine.reservation_table cimport table_init, reserve_first_free, slot_at, slot_grid
from buddysim.replay.engine.compressed cimport tabulate_plans
from buddysim.replay.engine.division cimport divisor
from buddysim.replay.engine.dram cimport dram_idle_ps, dram_read, dram_configure
from buddysim.replay.engine.horizon cimport horizon_init
from buddysim.replay.engine.kinds cimport DRAM_READ, HOST, REQUEST_PORT
from buddysim.replay.engine.address_map cimport CacheLocation, l2_location
from buddysim.replay.engine.address_map_simd cimport lane_divisor, has_eight_lane_lookup
from buddysim.replay.engine.partitions cimport invalidate_replicas, has_replica, partitions_init
from buddysim.replay.engine.port cimport port_wait
from buddysim.replay.engine.allocations cimport allocations_init
from buddysim.replay.engine.set_search cimport order_at
from buddysim.replay.l2.slice_hash.base cimport SliceHashBase

cdef extern from *:
    int bits_set "__builtin_popcountll"(unsigned long long x) noexcept nogil


cdef inline int64_t reserve_sector_slot(MemorySystem* m, const SlotGrid* grid, ReservationTable* table,
                                        int64_t t) noexcept nogil:
    """Reserves the first free slot from `t` on; returns its start, not before `t`."""
    return max_i64(t, grid.slot_ps * reserve_first_free(grid, table, &m.horizon, slot_at(grid, t)))


cdef inline int64_t earliest_request_time(const MemorySystem* m, SmPorts* sm, const Slice* slice, int64_t t) noexcept nogil:
    """Earliest time at which a request, at the head of its SM's queue at `t`, may leave for a slice.

    Consecutive requests of an SM to one slice are a run. A run that begins while requests of other SMs are reserved there leaves
    every other arbitration slot to them.
    """
    cdef int number = <int>(slice - m.slices) + 1
    if sm.last_slice == number and sm.next_request_ps >= t:
        return sm.next_request_ps
    sm.last_slice = number
    sm.slots_per_request = 1
    if t < (slice.reserved_until_by_others_ps if slice.reserved_by_sm == <int>(sm - m.sms) + 1 else slice.reserved_until_ps):
        sm.slots_per_request = 2
    return t


cdef inline void record_request(const MemorySystem* m, SmPorts* sm, Slice* slice, int64_t departure_ps) noexcept nogil:
    """Records that a request of an SM leaves for a slice at `departure_ps`."""
    cdef int number = <int>(sm - m.sms) + 1
    cdef int64_t until = departure_ps + m.slice_grid.slot_ps
    sm.next_request_ps = departure_ps + sm.slots_per_request * m.slice_grid.slot_ps
    if slice.reserved_by_sm == number:
        slice.reserved_until_ps = until
    elif until > slice.reserved_until_ps:
        slice.reserved_by_sm, slice.reserved_until_by_others_ps, slice.reserved_until_ps = number, slice.reserved_until_ps, until
    else:
        slice.reserved_until_by_others_ps = max_i64(slice.reserved_until_by_others_ps, until)


cdef int64_t send_requests(MemorySystem* m, SmPorts* sm, Slice* slice, int requests, int64_t t) noexcept nogil:
    """Sends the requests of a line, one per sector, to a slice through their SM's input queue, which they reach at `t`.

    A request leaves after those before it, when its slice accepts it; it blocks all requests behind it (head-of-line blocking).
    Returns the time at which the last one leaves, less its distance from the first one between an idle queue and an idle slice.
    """
    cdef int64_t departure_ps = t
    for _ in range(requests):
        departure_ps = max_i64(departure_ps, sm.queue_free_ps)
        if m.interleave_requesters:
            departure_ps = earliest_request_time(m, sm, slice, departure_ps)
        departure_ps = reserve_sector_slot(m, &m.slice_grid, slice.request_reservations, departure_ps)
        sm.queue_free_ps = departure_ps + m.queue_sector_ps
        if m.interleave_requesters:
            record_request(m, sm, slice, departure_ps)
    departure_ps = max_i64(t, departure_ps - (requests - 1) * max_i64(m.queue_sector_ps, m.slice_grid.slot_ps))
    count_wait(m, REQUEST_PORT, departure_ps - t)
    return departure_ps


cdef int64_t send_replies(MemorySystem* m, SmPorts* sm, Slice* slice, int replies, int64_t t) noexcept nogil:
    """Sends the replies of a slice at `t`, one per sector, to an SM; returns the time at which the last one leaves.

    In each slot, one reply leaves a slice and one arrives at an SM; replies to one request are at least `sector_ps` apart.
    Replies reserve slots out of order: none blocks another.
    """
    cdef int64_t departure_ps = t - m.sector_ps
    for _ in range(replies):
        departure_ps += m.sector_ps
        departure_ps = reserve_sector_slot(m, &m.slice_grid, slice.reply_reservations, departure_ps)
        departure_ps = reserve_sector_slot(m, &m.reply_grid, sm.reply_reservations, departure_ps)
    return departure_ps


cdef object memory_init(Arena* arena, MemorySystem* m, const SectorCache* l1, dict n, allocations, entry_classes,
                        dict policies, bint sized, bint has_metadata):
    """Sets up an empty memory system; returns an object that must live as long as it.

    `n`, `allocations`, `entry_classes` and `policies` are the arguments of `ReplayEngine`; the memory system points into the third.
    """
    cdef uint8_t[::1] classes = entry_classes
    cdef SliceHashBase slice_hash = policies["slice hash"]
    m.n_entries = classes.shape[0]
    m.l1 = l1
    m.entry_classes, m.sized = &classes[0], sized
    keep_alive = allocations_init(arena, m, allocations)
    crossbar_and_l2_init(arena, m, n)
    compression_init(arena, m, n)
    horizon_init(&m.horizon, n["horizon_pages"])
    dram_configure(arena, &m.dram, &m.horizon, n, policies)
    m.link.byte_cost_num, m.link.byte_cost_den = n["link_byte_cost"]
    m.link.write_cost_num, m.link.write_cost_den = n["link_write_byte_cost"]
    m.link.read_ps = n["link_read_ps"]
    m.link.ports = <Port*>arena_zeroed(arena, 2, sizeof(Port))
    m.link.header_bytes, m.link.packet_bytes = n["link_header_bytes"], n["link_max_payload_bytes"]
    slice_hash.prepare(arena, m.n_slices.by, n["slices_per_channel"])
    m.rules.slices_of, m.rules.slice_hash = slice_hash.slices_of, slice_hash.state
    addresses_init(m, l1, n, has_metadata and not m.perfect_metadata)
    return entry_classes, keep_alive


cdef int crossbar_and_l2_init(Arena* arena, MemorySystem* m, dict n) except -1:
    cdef int i, n_slices = n["slices"]
    m.request_ps, m.reply_ps = n["request_ps"], n["reply_ps"]
    m.sector_ps, m.slice_cost, m.dirty_store_cost = n["sector_ps"], n["slice_cost"], n["dirty_store_cost"]
    m.reply_cost, m.request_cost, m.atomic_cost = n["reply_cost"], n["request_cost"], n["atomic_cost"]
    m.sms = <SmPorts*>arena_zeroed(arena, n["sms"], sizeof(SmPorts))
    m.fetch_pairs, m.max_dirty_sectors = n["l2_fetch_pairs"], n["l2_max_dirty_sectors"]
    m.queue_sector_ps, m.interleave_requesters = n["queue_sector_ps"], n["interleave_requesters"]
    m.slice_grid = slot_grid(n["slice_sector_ps"], 0, <int64_t>1 << 62)      # no refresh
    m.reply_grid = slot_grid(n["reply_sector_ps"], 0, <int64_t>1 << 62)
    if n["crossbar_input_queued"]:
        for i in range(<int>n["sms"]):
            m.sms[i].reply_reservations = <ReservationTable*>arena_zeroed(arena, 1, sizeof(ReservationTable))
            table_init(&m.reply_grid, m.sms[i].reply_reservations)
    partitions_init(m, n)
    m.n_slices, m.pseudo_per_slice = divisor(n_slices), divisor(n["pseudo_per_slice"])
    m.interleave_shift = n["interleave_shift"]
    m.slices = <Slice*>arena_zeroed(arena, n_slices, sizeof(Slice))
    for i in range(n_slices):
        mshrs_init(arena, &m.slices[i].mshrs, n["l2_mshrs"])
        if n["crossbar_input_queued"]:
            m.slices[i].request_reservations = <ReservationTable*>arena_zeroed(arena, 1, sizeof(ReservationTable))
            m.slices[i].reply_reservations = <ReservationTable*>arena_zeroed(arena, 1, sizeof(ReservationTable))
            table_init(&m.slice_grid, m.slices[i].request_reservations)
            table_init(&m.slice_grid, m.slices[i].reply_reservations)
        m.slices[i].first_pseudo = i // <int>n["slices_per_channel"] * <int>n["pseudo_per_slice"]
    cache_init(arena, &m.l2, n_slices, n["l2_sets"], n["l2_ways"])
    m.l2_classes = <uint8_t*>arena_zeroed(arena, <size_t>n_slices * m.l2.sets.by, m.l2.padded_ways)
    return 0


cdef int compression_init(Arena* arena, MemorySystem* m, dict n) except -1:
    """Sets up the compressors and the metadata cache."""
    m.compressor_ps, m.compressor_cost = n["compressor_ps"], n["compressor_cost"]
    m.speculate_on_miss, m.speculate_on_pending = n["speculate_on_miss"], n["speculate_on_pending"]
    m.cancel_misspeculated = n["cancel_misspeculated"]
    m.fetch_whole_raw_entry, m.eight_byte_class = n["fetch_whole_raw_entry"], n["eight_byte_class"]
    tabulate_plans(m)
    m.perfect_metadata, m.metadata_ps = n["perfect_metadata"], n["metadata_ps"]
    m.metadata_sectors = n["metadata_line_sectors"]
    m.metadata_shift = 5 + m.metadata_sectors.bit_length()
    m.metadata_entry = <uint32_t>m.n_entries
    m.metadata_slices = divisor(n["metadata_slices"])
    m.metadata_cost = n["metadata_cost"]
    m.metadata_ports = <MetadataSlice*>arena_zeroed(arena, n["metadata_slices"], sizeof(MetadataSlice))
    cache_init(arena, &m.metadata, n["metadata_slices"], n["metadata_sets"], n["metadata_ways"])
    m.metadata_unit = divisor(m.metadata.sets.by * m.metadata.set_bytes)
    return 0


cdef void addresses_init(MemorySystem* m, const SectorCache* l1, dict n, bint has_metadata):
    """Sets up the address map, for one line (`address_map`) and for eight (`address_map_simd`)."""
    cdef LocationRules* rules = &m.rules
    m.stripe_entries, m.row_stripe_entries = divisor(n["dram_pseudo"]), divisor(n["row_stripe_entries"])
    m.bank_groups, m.banks_of_group = n["dram_bank_groups"], divisor(n["dram_banks"] // n["dram_bank_groups"])
    rules.slices, rules.slices_per_channel = lane_divisor(m.n_slices.by), lane_divisor(n["slices_per_channel"])
    rules.l1_sets, rules.l2_sets = lane_divisor(l1.sets.by), lane_divisor(m.l2.sets.by)
    rules.pseudo_per_slice, rules.row_stripes = lane_divisor(m.pseudo_per_slice.by), lane_divisor(m.row_stripe_entries.by)
    rules.banks_of_group, rules.stripes = lane_divisor(m.banks_of_group.by), lane_divisor(m.stripe_entries.by)
    rules.metadata_slices, rules.metadata_sets = lane_divisor(m.metadata_slices.by), lane_divisor(m.metadata.sets.by)
    rules.l1_set_bytes, rules.l2_set_bytes, rules.metadata_set_bytes = l1.set_bytes, m.l2.set_bytes, m.metadata.set_bytes
    rules.banks, rules.bank_groups = m.dram.n_banks, m.bank_groups
    rules.interleave_shift = m.interleave_shift
    rules.metadata_shift, rules.metadata_sectors = m.metadata_shift, m.metadata_sectors
    rules.metadata_entry, rules.has_metadata = m.metadata_entry, has_metadata
    m.eight_at_a_time = has_eight_lane_lookup()


cdef int64_t l2_clean_set(MemorySystem* m, Slice* slice, const CacheSet* set, int64_t t) noexcept nogil:
    """Writes back dirty lines of a set, least recently used first, while it has more than `max_dirty_sectors`.

    The lines stay, clean. Returns the time at which memory has accepted the last one.
    """
    cdef int position, dirty = 0
    cdef int64_t way
    cdef Line line
    for way in range(m.l2.ways):
        dirty += sector_count(set.lines[way] >> DIRTY)
    for position in range(<int>m.l2.ways - 1, -1, -1):
        if dirty <= m.max_dirty_sectors:
            break
        way = order_at(set.order, m.l2.ways, position)
        line = set.lines[way]
        if line >> DIRTY & 15:
            dirty -= sector_count(line >> DIRTY)
            t = evict_line(m, slice, set.tags[way], set, way, t)
            set.lines[way] = <Line>(line & ~(15 << DIRTY | 15 << PARTIAL))
    return t


cdef void count_waits_in(MemorySystem* m, int64_t* waits) noexcept:
    """Counts waits in `waits`; NULL: does not count them."""
    m.waits = waits
    m.generic_reads = waits != NULL or m.dram.model != NULL


cdef int64_t port_wait_counted(MemorySystem* m, Queue queue, Port* port, int64_t bucket, int64_t t, int64_t cost) noexcept nogil:
    """`port_transfer_counted` for a port whose bucket is full, or if waits are counted."""
    cdef int64_t grant_ps = port_wait(port, &m.horizon, bucket, t, cost)
    if m.waits != NULL:
        port.end = 0            # so that the next request is counted here, too
        count_wait(m, queue, grant_ps - t)
    return grant_ps


cdef int64_t device_fetch_generic(MemorySystem* m, const DeviceLocation* location, int bursts, int64_t t) noexcept nogil:
    """`device_fetch` if waits are counted, or with a model of its own (`DramOps`)."""
    cdef int64_t done = dram_read(&m.dram, location, bursts, t)
    count_wait(m, DRAM_READ, max_i64(0, done - t - dram_idle_ps(&m.dram, bursts)))
    return done


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
        set = cache_set(&m.l2, cache_location.set_offset)
        way = cache_find(&m.l2, &set, entry)
        if m.partitions > 1 and has_replica(m, &cache_location, entry) and allocation_of(m, entry).placement != HOST:
            invalidate_replicas(m, &cache_location, entry, 15)
        if way >= 0:
            allocation = allocation_of(m, entry)
            if allocation.placement == HOST:
                continue
            dirty = set.lines[way] >> DIRTY & 15
            if dirty:
                allocation.writebacks += 1
                m.count.writeback_sectors += sector_count(dirty)
            cache_empty_way(&m.l2, &set, way)
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
    for set_offset in range(<int64_t>m.l2.units * m.l2.sets.by):
        for way in range(m.l2.ways):
            total += bits_set(cache_set(&m.l2, <uint32_t>set_offset * m.l2.set_bytes).lines[way] >> DIRTY & 15)
    return total
