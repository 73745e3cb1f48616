"""Set-up of the memory system, and rare operations."""
from buddysim.replay.crossbar.input_queues cimport input_queues_init
from buddysim.replay.crossbar.interleaved_requesters cimport interleaving_init
from buddysim.replay.engine.arena cimport arena_zeroed
from buddysim.replay.engine.cache cimport cache_empty_way, cache_init
from buddysim.replay.engine.division cimport divisor
from buddysim.replay.dram.dram cimport dram_idle_ps, dram_read, dram_configure
from buddysim.replay.engine.horizon cimport horizon_init
from buddysim.replay.engine.kinds cimport DRAM_READ, HOST
from buddysim.replay.engine.address_map cimport CacheLocation, l2_location
from buddysim.replay.engine.address_map_simd cimport lane_divisor, has_eight_lane_lookup
from buddysim.replay.l2.partitions cimport invalidate_replicas, has_replica, partitions_init
from buddysim.replay.engine.port cimport port_wait
from buddysim.replay.engine.allocations cimport allocations_init
from buddysim.replay.l2.dirty_limit cimport dirty_limit_init
from buddysim.replay.l2.slice_hash.base cimport SliceHashBase
from buddysim.replay.link.link cimport READ_REQUEST, link_init

cdef extern from *:
    int bits_set "__builtin_popcountll"(unsigned long long x) noexcept nogil


cdef object memory_init(Arena* arena, MemorySystem* m, const SectorCache* l1, dict n, allocations, entry_classes,
                        dict policies, bint sized):
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
    horizon_init(&m.horizon, n["horizon_pages"])
    dram_configure(arena, &m.dram, &m.horizon, n, policies)
    link_init(arena, &m.link, n, policies)
    slice_hash.prepare(arena, m.l2.n_slices.by, n["slices_per_channel"])
    m.rules.slices_of, m.rules.slice_hash = slice_hash.slices_of, slice_hash.state
    addresses_init(m, l1, n)
    return entry_classes, keep_alive


cdef int crossbar_and_l2_init(Arena* arena, MemorySystem* m, dict n) except -1:
    cdef int i, n_slices = n["slices"]
    m.crossbar.request_ps, m.crossbar.reply_ps = n["request_ps"], n["reply_ps"]
    m.crossbar.sector_ps, m.l2.slice_cost, m.l2.dirty_store_cost = n["sector_ps"], n["slice_cost"], n["dirty_store_cost"]
    m.crossbar.reply_cost, m.crossbar.request_cost, m.l2.atomic_cost = n["reply_cost"], n["request_cost"], n["atomic_cost"]
    m.crossbar.sms = <SmPorts*>arena_zeroed(arena, n["sms"], sizeof(SmPorts))
    m.crossbar.n_sms, m.l2.fetch_pairs = n["sms"], n["l2_fetch_pairs"]
    partitions_init(m, n)
    dirty_limit_init(m, n)
    m.l2.n_slices, m.l2.pseudo_per_slice = divisor(n_slices), divisor(n["pseudo_per_slice"])
    m.l2.interleave_shift = n["interleave_shift"]
    m.l2.slices = <Slice*>arena_zeroed(arena, n_slices, sizeof(Slice))
    for i in range(n_slices):
        mshrs_init(arena, &m.l2.slices[i].mshrs, n["l2_mshrs"])
        m.l2.slices[i].first_pseudo = i // <int>n["slices_per_channel"] * <int>n["pseudo_per_slice"]
    if n["crossbar_input_queued"]:
        input_queues_init(arena, m, n)
        if n["interleave_requesters"]:
            interleaving_init(arena, m)
    cache_init(arena, &m.l2.cache, n_slices, n["l2_sets"], n["l2_ways"])
    m.l2.classes = <uint8_t*>arena_zeroed(arena, <size_t>n_slices * m.l2.cache.sets.by, m.l2.cache.padded_ways)
    return 0


cdef void addresses_init(MemorySystem* m, const SectorCache* l1, dict n):
    """Sets up the address map, for one line (`address_map`) and for eight (`address_map_simd`)."""
    cdef LocationRules* rules = &m.rules
    m.dram.stripe_entries, m.dram.row_stripe_entries = divisor(n["dram_pseudo"]), divisor(n["row_stripe_entries"])
    m.dram.bank_groups, m.dram.banks_of_group = n["dram_bank_groups"], divisor(n["dram_banks"] // n["dram_bank_groups"])
    rules.slices, rules.slices_per_channel = lane_divisor(m.l2.n_slices.by), lane_divisor(n["slices_per_channel"])
    rules.l1_sets, rules.l2_sets = lane_divisor(l1.sets.by), lane_divisor(m.l2.cache.sets.by)
    rules.pseudo_per_slice, rules.row_stripes = lane_divisor(m.l2.pseudo_per_slice.by), lane_divisor(m.dram.row_stripe_entries.by)
    rules.banks_of_group, rules.stripes = lane_divisor(m.dram.banks_of_group.by), lane_divisor(m.dram.stripe_entries.by)
    rules.l1_set_bytes, rules.l2_set_bytes = l1.set_bytes, m.l2.cache.set_bytes
    rules.banks, rules.bank_groups = m.dram.n_banks, m.dram.bank_groups
    rules.interleave_shift = m.l2.interleave_shift
    m.eight_at_a_time = has_eight_lane_lookup()


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


cdef int64_t link_request(MemorySystem* m, int64_t payload, int64_t t) noexcept nogil:
    """Sends the requests of a read to memory behind the link; returns the time at which the link accepts them."""
    cdef int64_t total = link_bytes(&m.link, payload, READ_REQUEST)
    if not total:
        return t
    m.link.write_bytes += total
    return port_transfer_counted(m, LINK_WRITE, &m.link.ports[1], t, link_write_cost(&m.link, total))


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
