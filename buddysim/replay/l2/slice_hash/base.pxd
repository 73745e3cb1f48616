"""Base class of L2 slice hashes, each a module of this folder: which slice has a line."""
from libc.stdint cimport uint32_t

from buddysim.replay.component.base cimport Component
from buddysim.replay.primitives.address_map_simd cimport SlicesOp
from buddysim.replay.primitives.arena cimport Arena


cdef class SliceHashBase(Component):
    cdef SlicesOp slices_of     # NULL: `xor_fold`, which the engine inlines
    cdef const void* state      # first argument of `slices_of`: tables of the hash, in the run's arena

    cdef int prepare(self, Arena* arena, uint32_t slices, uint32_t slices_per_channel) except -1
