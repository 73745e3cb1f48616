"""Set-up of the memory system."""
from buddysim.replay.crossbar.crossbar cimport crossbar_init
from buddysim.replay.dram.dram cimport dram_configure
from buddysim.replay.l2.l2 cimport l2_init
from buddysim.replay.l2.slice_hash.base cimport SliceHashBase
from buddysim.replay.link.link cimport link_init
from buddysim.replay.memory.allocations cimport allocations_init
from buddysim.replay.primitives.address_map_simd cimport has_eight_lane_lookup, lane_divisor
from buddysim.replay.primitives.division cimport divisor
from buddysim.replay.primitives.horizon cimport horizon_init


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
    l2_init(arena, m, n)
    crossbar_init(arena, m, n)
    horizon_init(&m.horizon, n["horizon_pages"])
    m.waits.horizon = &m.horizon
    dram_configure(arena, &m.dram, &m.horizon, n, policies)
    link_init(arena, &m.link, n, policies)
    slice_hash.prepare(arena, m.l2.n_slices.by, n["slices_per_channel"])
    m.rules.slices_of, m.rules.slice_hash = slice_hash.slices_of, slice_hash.state
    addresses_init(m, l1, n)
    return entry_classes, keep_alive


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


cdef void count_waits_in(MemorySystem* m, int64_t* bins) noexcept:
    """Counts waits in `bins`; NULL: does not count them."""
    m.waits.bins = bins
    m.dram.generic_reads = bins != NULL or m.dram.model != NULL
