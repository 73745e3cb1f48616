"""`crossbar.input_queued`: requests of an SM leave through one FIFO; slices and SMs have reservation tables of slots."""
from buddysim.replay.memory.memory cimport MemorySystem
from buddysim.replay.primitives.arena cimport Arena


cdef int input_queues_init(Arena* arena, MemorySystem* m, dict n) except -1
