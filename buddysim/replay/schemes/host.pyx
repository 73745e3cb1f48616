"""`host`: every allocation pinned in host memory, accessed over the link."""
from buddysim.replay.engine.memory cimport PLACE_HOST, MemorySystem
from buddysim.replay.engine.scheme cimport SchemeBase
from buddysim.replay.engine.uncompressed cimport uncompressed_fill, uncompressed_writeback


cdef class Scheme(SchemeBase):
    def __cinit__(self):
        self.fill, self.writeback = uncompressed_fill, uncompressed_writeback

    cdef int prepare(self, MemorySystem* m) except -1:
        for region in range(m.n_regions):
            m.regions[region].place = PLACE_HOST
        return 0
