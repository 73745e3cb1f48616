"""Base class of write drains, each a module of this folder: when queued writes drain, and what reads may do meanwhile."""
from buddysim.replay.component.base cimport Component
from buddysim.replay.dram.dram cimport Dram
from buddysim.replay.primitives.arena cimport Arena


cdef class WriteDrainBase(Component):
    cdef int prepare(self, Arena* arena, Dram* dram) except -1
