"""`l2.max_dirty`: a limit of the dirty sectors of a set."""
from buddysim.replay.memory.memory cimport MemorySystem


cdef int dirty_limit_init(MemorySystem* m, dict n) except -1
