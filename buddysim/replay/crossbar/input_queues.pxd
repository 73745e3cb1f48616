"""`crossbar.input_queued`: requests of an SM leave through one FIFO; slices and SMs have reservation tables of slots."""
from buddysim.replay.engine.arena cimport Arena
from buddysim.replay.engine.memory cimport MemorySystem


cdef int input_queues_init(Arena* arena, MemorySystem* m, dict n) except -1
