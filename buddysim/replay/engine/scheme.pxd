"""What a memory configuration is: what an L2 miss and a write-back do. One file in `schemes/` each."""
from buddysim.replay.engine.memory cimport FillOp, MemorySystem, WritebackOp

cdef class SchemeBase:
    cdef FillOp fill
    cdef WritebackOp writeback

    cdef int prepare(self, MemorySystem* m) except -1
