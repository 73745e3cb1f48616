"""What copies, fills and frees do to the L2's lines."""
from libc.stdint cimport int64_t, uint32_t

from buddysim.replay.engine.memory cimport MemorySystem

cdef int64_t l2_drop(MemorySystem* m, int64_t first_sector, int64_t end_sector) noexcept nogil
cdef int64_t l2_most_held(const MemorySystem* m) noexcept nogil
cdef void l2_rewrite(MemorySystem* m, uint32_t entry) noexcept nogil
cdef void l2_hold(MemorySystem* m, int64_t first_sector, int64_t end_sector, int64_t now) noexcept nogil
