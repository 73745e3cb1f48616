"""`crossbar.input_queued`: requests of an SM leave through one FIFO; slices and SMs have reservation tables of slots."""
from libc.stdint cimport int64_t

from buddysim.replay.memory.memory cimport MemorySystem, Slice
from buddysim.replay.primitives.arena cimport Arena


cdef int input_queues_init(Arena* arena, MemorySystem* m, dict n) except -1
cdef int64_t reserve_between_slices(MemorySystem* m, Slice* sender, Slice* receiver, int64_t t) noexcept nogil
