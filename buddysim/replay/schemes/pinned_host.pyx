"""`pinned-host`: every allocation pinned in host memory, accessed over the link."""
from buddysim.replay.engine.scheme cimport SchemeBase
from buddysim.replay.engine.uncompressed cimport uncompressed_fill, uncompressed_writeback

ORDER = 50


cdef class Scheme(SchemeBase):
    SUMMARY = "every allocation pinned in host memory"
    allocations_in_host_memory = True

    def __cinit__(self):
        self.fill, self.writeback = uncompressed_fill, uncompressed_writeback
