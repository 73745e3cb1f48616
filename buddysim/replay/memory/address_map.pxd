"""Address map of a line: L2 slice and set, row in device memory, and the scheme's own words.

One line at a time; `address_map_simd.h` locates eight, with equal results.
"""
from libc.stdint cimport uint16_t, uint32_t

from buddysim.replay.dram.dram cimport DeviceLocation, dram_location
from buddysim.replay.memory.memory cimport MemorySystem, Slice
from buddysim.replay.primitives.address_map_simd cimport LineLocation, OwnWords
from buddysim.replay.primitives.cache cimport SectorCache, cache_set_offset, hash_u32
from buddysim.replay.primitives.compiler_hints cimport unlikely
from buddysim.replay.primitives.division cimport Divisor, divide, remainder

# Where the L2 would hold an entry.
cdef struct CacheLocation:
    uint32_t slice
    uint32_t set_offset  # in SectorCache.set_data


cdef inline uint32_t swizzle(Divisor divisor, uint32_t x, uint32_t group) noexcept nogil:
    """Position of `x` in its group of `divisor` numbers: a permutation chosen by a hash of the group's index.

    Each group covers every position once, and strided accesses are spread over the positions.
    """
    cdef uint32_t position
    if divisor.is_power:
        return (x ^ hash_u32(group)) & (divisor.by - 1)
    position = x - group * divisor.by + remainder(divisor, hash_u32(group))
    return position - divisor.by if position >= divisor.by else position


cdef inline uint32_t index_in_slice(const MemorySystem* m, uint32_t entry, uint32_t group) noexcept nogil:
    """Index of an entry among the entries of its slice; `group` is the index of its group of all slices."""
    return group << m.l2.interleave_shift | entry & ((<uint32_t>1 << m.l2.interleave_shift) - 1)


cdef inline void l2_location(const MemorySystem* m, uint32_t entry, CacheLocation* cache_location) noexcept nogil:
    """L2 slice and set of an entry."""
    cdef uint32_t unit = entry >> m.l2.interleave_shift
    cdef uint32_t group = divide(m.l2.n_slices, unit)
    if unlikely(m.rules.slices_of != NULL):
        m.rules.slices_of(m.rules.slice_hash, &unit, 1, &cache_location.slice)
    else:
        cache_location.slice = swizzle(m.l2.n_slices, unit, group)
    cache_location.set_offset = cache_set_offset(&m.l2.cache, cache_location.slice, index_in_slice(m, entry, group))


cdef inline void locate_row(const MemorySystem* m, uint32_t pseudo, uint32_t entry, DeviceLocation* location) noexcept nogil:
    """Bank and row of an entry in its pseudo-channel.

    A stripe is one entry in every pseudo-channel. Successive stripes use successive bank groups, so that the columns of a stream
    follow each other at tCCD_S. A row stripe is one row in every bank group of every pseudo-channel; a hash spreads row stripes
    over the banks. All schemes use uncompressed addresses: they differ in time only by the sectors they move and by their waits.
    """
    cdef uint32_t row_stripe = divide(m.dram.row_stripe_entries, entry)
    cdef uint32_t row = divide(m.dram.banks_of_group, row_stripe)
    cdef uint32_t group = divide(m.dram.stripe_entries, entry >> m.l2.interleave_shift) & (m.dram.bank_groups - 1)
    cdef uint32_t in_group = (row_stripe ^ hash_u32(row)) & (m.dram.banks_of_group.by - 1)
    dram_location(&m.dram, pseudo * m.dram.n_banks + group + in_group * m.dram.bank_groups, row, location)


cdef inline void locate_entry(const MemorySystem* m, const Slice* slice, uint32_t entry, DeviceLocation* location) noexcept nogil:
    """Location of an entry's device sectors, in a pseudo-channel behind its slice."""
    cdef uint32_t local = index_in_slice(m, entry, divide(m.l2.n_slices, entry >> m.l2.interleave_shift))
    locate_row(m, slice.first_pseudo + remainder(m.l2.pseudo_per_slice, local ^ local >> 3 ^ local >> 7), entry, location)


cdef inline void locate_line(const MemorySystem* m, const SectorCache* l1, LineLocation* line) noexcept nogil:
    """Completes the location of a line; its entry and masks are set."""
    cdef CacheLocation cache_location
    cdef DeviceLocation location
    cdef OwnWords own
    l2_location(m, line.entry, &cache_location)
    line.slice, line.l2_set = cache_location.slice, cache_location.set_offset
    line.l1_set = cache_set_offset(l1, 0, line.entry)
    locate_entry(m, &m.l2.slices[cache_location.slice], line.entry, &location)
    line.bank, line.row = <uint16_t>(location.bank - m.dram.banks), <uint32_t>location.row
    line.own_short = line.own[0] = line.own[1] = 0
    if m.rules.locate_own != NULL:
        m.rules.locate_own(m.rules.own_state, &line.entry, 1, &own)
        line.own_short, line.own[0], line.own[1] = <uint16_t>own.shorts[0], own.first[0], own.second[0]
