"""Where a line lies: L2 slice and set, row in device memory, set and row of its metadata. The readable twin of `address_map_simd.h`."""
from libc.stdint cimport uint16_t, uint32_t

from buddysim.replay.engine.cache cimport SectorCache, cache_set_offset, hash_u32
from buddysim.replay.engine.division cimport Divisor, divide, remainder
from buddysim.replay.engine.dram cimport DeviceLocation, dram_location
from buddysim.replay.engine.compiler_hints cimport unlikely
from buddysim.replay.engine.memory cimport MemorySystem, Slice
from buddysim.replay.engine.address_map_simd cimport LineLocation

# Where the L2 would hold an entry.
cdef struct CacheLocation:
    uint32_t slice
    uint32_t set_offset  # in SectorCache.set_data


cdef inline uint32_t swizzle(Divisor divisor, uint32_t x, uint32_t group) noexcept nogil:
    """Position of `x` in its group of `divisor` neighbours: a bijective swizzle keyed by a hash of the group index.

    Every group covers every position once, and strides spread all the same.
    """
    cdef uint32_t position
    if divisor.is_power:
        return (x ^ hash_u32(group)) & (divisor.by - 1)
    position = x - group * divisor.by + remainder(divisor, hash_u32(group))
    return position - divisor.by if position >= divisor.by else position


cdef inline uint32_t polynomial_slice(const MemorySystem* m, uint32_t unit, uint32_t group) noexcept nogil:
    """Slice of neighbouring lines: their place in the group, channels first, exclusive or a remainder of the group's number."""
    cdef uint32_t channel = unit & ((<uint32_t>1 << m.channel_bits) - 1)
    cdef uint32_t slice_in_channel = unit >> m.channel_bits & ((<uint32_t>1 << m.channel_slice_bits) - 1)
    cdef uint32_t remainder = m.remainders[group & 255] ^ m.remainders[256 + (group >> 8 & 255)]
    remainder ^= m.remainders[512 + (group >> 16 & 255)] ^ m.remainders[768 + (group >> 24)]
    return (channel << m.channel_slice_bits | slice_in_channel) ^ remainder


cdef inline uint32_t index_in_slice(const MemorySystem* m, uint32_t entry, uint32_t group) noexcept nogil:
    """An entry's number among those of its slice; `group` is that of all slices' neighbouring lines."""
    return group << m.interleave_shift | entry & ((<uint32_t>1 << m.interleave_shift) - 1)


cdef inline void l2_location(const MemorySystem* m, uint32_t entry, CacheLocation* spot) noexcept nogil:
    """The L2 slice and set of an entry."""
    cdef uint32_t unit = entry >> m.interleave_shift
    cdef uint32_t group = divide(m.n_slices, unit)
    if unlikely(m.polynomial_hash):
        spot.slice = polynomial_slice(m, unit, group)
    else:
        spot.slice = swizzle(m.n_slices, unit, group)
    spot.set_offset = cache_set_offset(&m.l2, spot.slice, index_in_slice(m, entry, group))


cdef inline void locate_row(const MemorySystem* m, uint32_t pseudo, uint32_t entry, DeviceLocation* location) noexcept nogil:
    """Where an entry lies in its pseudo-channel.

    One entry of every pseudo-channel is a stripe; stripes go round the bank groups, so that a stream's columns follow each other at
    tCCD_S; one row in every bank group of every pseudo-channel is a piece, and a hash spreads pieces over the banks. Uncompressed
    addresses count in every scheme, so that schemes differ in time only by what they move and wait for.
    """
    cdef uint32_t row_stripe = divide(m.row_stripe_entries, entry)
    cdef uint32_t row = divide(m.banks_of_group, row_stripe)
    cdef uint32_t group = divide(m.stripe_entries, entry >> m.interleave_shift) & (m.bank_groups - 1)
    cdef uint32_t in_group = (row_stripe ^ hash_u32(row)) & (m.banks_of_group.by - 1)
    dram_location(&m.dram, pseudo * m.dram.n_banks + group + in_group * m.bank_groups, row, location)


cdef inline void locate_entry(const MemorySystem* m, const Slice* slice, uint32_t entry, DeviceLocation* location) noexcept nogil:
    """Where the device part of an entry lies: in a pseudo-channel behind its slice."""
    cdef uint32_t local = index_in_slice(m, entry, divide(m.n_slices, entry >> m.interleave_shift))
    locate_row(m, slice.first_pseudo + remainder(m.pseudo_per_slice, local ^ local >> 3 ^ local >> 7), entry, location)


cdef inline void locate_metadata(const MemorySystem* m, uint32_t line, DeviceLocation* location) noexcept nogil:
    """Where a metadata line lies: in a region behind the data, spread over the channels as data are."""
    cdef uint32_t group = divide(m.stripe_entries, line)
    locate_row(m, swizzle(m.stripe_entries, line, group), m.metadata_entry + line * m.metadata_sectors / 4, location)


cdef inline uint32_t metadata_set(const MemorySystem* m, uint32_t line) noexcept nogil:
    """Where the metadata cache would hold a metadata line."""
    cdef uint32_t local = divide(m.metadata_slices, line)
    return cache_set_offset(&m.metadata, swizzle(m.metadata_slices, line, local), local)


cdef inline void locate_line(const MemorySystem* m, const SectorCache* l1, LineLocation* line) noexcept nogil:
    """Completes the location of a line whose entry and masks are set."""
    cdef CacheLocation spot
    cdef DeviceLocation location
    l2_location(m, line.entry, &spot)
    line.slice, line.l2_set = spot.slice, spot.set_offset
    line.l1_set = cache_set_offset(l1, 0, line.entry)
    locate_entry(m, &m.slices[spot.slice], line.entry, &location)
    line.bank, line.row = <uint16_t>(location.bank - m.dram.banks), <uint32_t>location.row
    line.metadata_set = line.metadata_bank = line.metadata_row = 0
    if m.rules.has_metadata:
        line.metadata_set = metadata_set(m, line.entry >> m.metadata_shift)
        locate_metadata(m, line.entry >> m.metadata_shift, &location)
        line.metadata_bank, line.metadata_row = <uint16_t>(location.bank - m.dram.banks), <uint32_t>location.row
