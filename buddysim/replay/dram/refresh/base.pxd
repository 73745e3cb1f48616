"""Base class of refresh modes, each a module of this folder: when a bank was refreshed last."""
from buddysim.replay.component.base cimport Component
from buddysim.replay.dram.dram cimport Dram
from buddysim.replay.primitives.arena cimport Arena


cdef class RefreshBase(Component):
    cdef int prepare(self, Arena* arena, Dram* dram) except -1
