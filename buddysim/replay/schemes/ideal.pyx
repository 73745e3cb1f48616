"""`ideal`: unlimited device memory, no compression. Moves exactly the sectors asked for: the baseline of every ratio."""
from buddysim.replay.engine.scheme cimport SchemeBase
from buddysim.replay.engine.uncompressed cimport uncompressed_fill, uncompressed_writeback


cdef class Scheme(SchemeBase):
    def __cinit__(self):
        self.fill, self.writeback = uncompressed_fill, uncompressed_writeback
