"""`crossbar.interleave_requesters`: an SM leaves every other arbitration slot of a slice to competing SMs (as iSLIP would)."""
from buddysim.replay.engine.arena cimport Arena
from buddysim.replay.engine.memory cimport MemorySystem


cdef int interleaving_init(Arena* arena, MemorySystem* m) except -1
