"""`buddy`: Buddy Compression, with device sectors in device memory and buddy sectors behind the link.

The target ratio of an allocation gives the device sectors of its entries; an entry that overflows has buddy sectors, too. With
`buddy.bypass_1x`, allocations of target 1x are stored uncompressed and need no metadata.
"""
from libc.stdint cimport int64_t, uint32_t

from buddysim.replay.engine.cache cimport Line
from buddysim.replay.engine.compressed cimport compressed_fill, compressed_writeback
from buddysim.replay.engine.kinds cimport COMPRESSED
from buddysim.replay.engine.memory cimport FillOp, MemorySystem, AllocationState, Slice, allocation_of
from buddysim.replay.engine.address_map_simd cimport LineLocation
from buddysim.replay.engine.scheme cimport SchemeBase
from buddysim.replay.engine.uncompressed cimport raw_fill, raw_writeback
from buddysim.replay.engine.versions cimport cpu_is_newer, int64_on_newer

ORDER = 30


cdef inline int64_t fill(MemorySystem* m, Slice* slice, const LineLocation* at, unsigned int* sectors, int64_t t) noexcept nogil:
    cdef AllocationState* allocation = allocation_of(m, at.entry)
    allocation.fills += 1
    if allocation.placement == COMPRESSED:
        return compressed_fill(m, allocation, slice, at, sectors, t, allocation.device_sectors, False)
    return raw_fill(m, allocation, at, sectors, t)


cdef int64_on_newer fill_newer_cpu(MemorySystem* m, Slice* slice, const LineLocation* at, unsigned int* sectors,
                                   int64_t t) noexcept nogil:
    return fill(m, slice, at, sectors, t)


cdef int64_t writeback(MemorySystem* m, Slice* slice, uint32_t entry, Line line, int new_class, int64_t t) noexcept nogil:
    cdef AllocationState* allocation = allocation_of(m, entry)
    allocation.writebacks += 1
    if allocation.placement == COMPRESSED:
        return compressed_writeback(m, allocation, slice, entry, line, new_class, t, allocation.device_sectors, False)
    return raw_writeback(m, allocation, slice, entry, line, t)


cdef class Scheme(SchemeBase):
    SUMMARY = "Buddy Compression: sectors beyond the target ratio lie in buddy memory behind the link"
    uses_targets = True
    uses_sizes = True
    checks_capacity = True

    def __cinit__(self):
        self.fill, self.writeback = <FillOp>fill_newer_cpu if cpu_is_newer() else fill, writeback
