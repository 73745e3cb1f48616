"""Fills and write-backs that move the requested sectors, of uncompressed device memory or of host memory.

If misses fetch aligned pairs of sectors (`l2.fetch_granularity`), fills from device memory move the other sectors of the pairs,
too.
"""
from libc.stdint cimport int64_t, uint32_t

from buddysim.replay.dram.dram cimport DeviceLocation, dram_location
from buddysim.replay.dram.transfers cimport device_fetch, device_write
from buddysim.replay.link.transfers cimport link_read, link_write
from buddysim.replay.memory.address_map cimport locate_entry
from buddysim.replay.memory.allocations cimport allocation_of
from buddysim.replay.memory.memory cimport MemorySystem, AllocationState, Slice
from buddysim.replay.primitives.address_map_simd cimport LineLocation
from buddysim.replay.primitives.cache cimport DIRTY, Line, sector_count
from buddysim.replay.primitives.compiler_hints cimport unlikely
from buddysim.replay.primitives.kinds cimport DEMAND, HOST, OVERFETCH, SECTOR_BYTES, WRITEBACK


cdef inline int64_t host_fill(MemorySystem* m, unsigned int requested, int64_t t) noexcept nogil:
    """Fills sectors from host memory."""
    return link_read(&m.link, &m.waits, SECTOR_BYTES * sector_count(requested), DEMAND, t)


cdef inline int64_t host_writeback(MemorySystem* m, Line line, int64_t t) noexcept nogil:
    """Writes the dirty sectors of a line back to host memory."""
    return link_write(&m.link, &m.waits, SECTOR_BYTES * sector_count(line >> DIRTY), WRITEBACK, t)


cdef inline int64_t raw_fill(MemorySystem* m, const AllocationState* allocation, const LineLocation* at, unsigned int* sectors,
                             int64_t t) noexcept nogil:
    """Fills sectors from the memory of the allocation; `sectors`: requested sectors, becomes the filled ones."""
    cdef int bursts = sector_count(sectors[0])
    cdef DeviceLocation location
    if allocation.placement == HOST:
        return host_fill(m, sectors[0], t)
    dram_location(&m.dram, at.bank, at.row, &location)
    location.channel.moved[<int>DEMAND] += bursts
    if unlikely(m.l2.extra_fetch_mask != 0):
        location.channel.moved[<int>OVERFETCH] += sector_count(m.l2.extra_fetch_mask)
        bursts += sector_count(m.l2.extra_fetch_mask)
        sectors[0] |= m.l2.extra_fetch_mask
    return device_fetch(&m.dram, &m.waits, &location, bursts, t)


cdef inline int64_t raw_writeback(MemorySystem* m, const AllocationState* allocation, Slice* slice, uint32_t entry, Line line,
                                  int64_t t) noexcept nogil:
    """Writes dirty sectors back. Partial sectors carry a byte mask, so nothing is read."""
    cdef int sectors = sector_count(line >> DIRTY)
    cdef DeviceLocation location
    if allocation.placement == HOST:
        return host_writeback(m, line, t)
    locate_entry(m, slice, entry, &location)
    return device_write(&m.dram, &m.waits, &location, sectors, WRITEBACK, t)


cdef inline int64_t uncompressed_fill(MemorySystem* m, Slice* slice, const LineLocation* at, unsigned int* sectors,
                                      int64_t t) noexcept nogil:
    """Fill of a scheme without compression."""
    cdef AllocationState* allocation = allocation_of(m, at.entry)
    allocation.fills += 1
    return raw_fill(m, allocation, at, sectors, t)


cdef inline int64_t uncompressed_writeback(MemorySystem* m, Slice* slice, uint32_t entry, Line line, int new_class,
                                           int64_t t) noexcept nogil:
    """Write-back of a scheme without compression."""
    cdef AllocationState* allocation = allocation_of(m, entry)
    allocation.writebacks += 1
    return raw_writeback(m, allocation, slice, entry, line, t)
