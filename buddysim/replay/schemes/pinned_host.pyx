"""`pinned-host`: zero-copy access over the link to allocations that are all pinned in host memory."""
from buddysim.replay.schemes.base cimport SchemeBase
from buddysim.replay.schemes.uncompressed cimport uncompressed_fill, uncompressed_writeback

ORDER = 50


cdef class Scheme(SchemeBase):
    SUMMARY = "all allocations pinned in host memory, accessed over the link (zero-copy)"
    allocations_in_host_memory = True

    def __cinit__(self):
        self.fill, self.writeback = uncompressed_fill, uncompressed_writeback
