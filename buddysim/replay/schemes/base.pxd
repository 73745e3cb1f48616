"""Base class of replay schemes, each a module in `schemes/`: what an L2 miss and a write-back do."""
from libc.stdint cimport int64_t

from buddysim.replay.memory.memory cimport AccessHook, DueHook, FillOp, MayCacheOp, MemorySystem, WakeHook, WritebackOp, WrittenHook
from buddysim.replay.primitives.arena cimport Arena

cdef class SchemeBase:
    cdef FillOp fill
    cdef WritebackOp writeback
    cdef AccessHook on_access
    cdef MayCacheOp may_cache
    cdef WakeHook on_wake
    cdef DueHook on_due
    cdef WrittenHook on_written

    cdef int prepare(self, MemorySystem* m, Arena* arena) except -1
    cdef int64_t requests(self, const MemorySystem* m, int queue)
    cdef dict counters(self, const MemorySystem* m)
