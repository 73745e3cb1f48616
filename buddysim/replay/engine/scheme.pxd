"""What a replay scheme is: what an L2 miss and a write-back do. One file in `schemes/` each."""
from buddysim.replay.engine.arena cimport Arena
from buddysim.replay.engine.memory cimport AccessOp, FillOp, HoldOp, MemorySystem, WakeOp, WritebackOp, WrittenOp

cdef class SchemeBase:
    cdef FillOp fill
    cdef WritebackOp writeback
    cdef AccessOp access
    cdef HoldOp may_hold
    cdef WakeOp wake
    cdef WrittenOp written

    cdef int prepare(self, MemorySystem* m, Arena* arena) except -1
    cdef dict counters(self, const MemorySystem* m)
