"""`host`: every allocation pinned in host memory, accessed over the link."""
from libc.stdint cimport int64_t, uint32_t

from buddysim.replay.cache cimport Line
from buddysim.replay.memory cimport PLACE_HOST, MemorySystem, Region, region_of
from buddysim.replay.scheme cimport SchemeBase
from buddysim.replay.uncompressed cimport raw_fill, raw_writeback


cdef int64_t fill(MemorySystem* m, uint32_t entry, int slice, unsigned int wanted, unsigned int* filled,
                  int64_t t) noexcept nogil:
    cdef Region* region = region_of(m, entry)
    region.fills += 1
    return raw_fill(m, region, entry, slice, wanted, t)


cdef int64_t writeback(MemorySystem* m, uint32_t entry, int slice, Line line, int64_t t) noexcept nogil:
    cdef Region* region = region_of(m, entry)
    region.writebacks += 1
    return raw_writeback(m, region, entry, slice, line, t)


cdef class Scheme(SchemeBase):
    def __cinit__(self):
        self.fill, self.writeback = fill, writeback

    cdef int prepare(self, MemorySystem* m) except -1:
        for region in range(m.n_regions):
            m.regions[region].place = PLACE_HOST
        return 0
