"""Base class of models of device memory, each a module of this folder: how long a read or a write takes."""
from buddysim.replay.component.base cimport Component
from buddysim.replay.dram.dram cimport Dram
from buddysim.replay.primitives.arena cimport Arena


cdef class DramModelBase(Component):
    cdef int prepare(self, Arena* arena, Dram* dram) except -1
