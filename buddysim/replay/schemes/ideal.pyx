"""`ideal`: unlimited device memory, no compression. Moves exactly the sectors asked for: the baseline of every ratio."""
from buddysim.replay.engine.scheme cimport SchemeBase
from buddysim.replay.engine.uncompressed cimport uncompressed_fill, uncompressed_writeback

ORDER = 10


cdef class Scheme(SchemeBase):
    SUMMARY = "unlimited device memory, no compression"

    def __cinit__(self):
        self.fill, self.writeback = uncompressed_fill, uncompressed_writeback
