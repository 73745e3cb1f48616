"""`ideal` (uncompressed, unlimited memory): moves the requested sectors only. It is the baseline of every ratio."""
from buddysim.replay.schemes.base cimport SchemeBase
from buddysim.replay.schemes.uncompressed cimport uncompressed_fill, uncompressed_writeback

ORDER = 10


cdef class Scheme(SchemeBase):
    SUMMARY = "uncompressed, unlimited device memory"

    def __cinit__(self):
        self.fill, self.writeback = uncompressed_fill, uncompressed_writeback
