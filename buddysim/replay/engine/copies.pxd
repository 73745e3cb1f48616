"""Effects of memcpy, memset and free on the L2."""
from libc.stdint cimport int64_t, uint32_t

from buddysim.replay.memory.memory cimport MemorySystem

cdef int64_t l2_invalidate_range(MemorySystem* m, int64_t first_sector, int64_t end_sector) noexcept nogil
cdef int64_t l2_max_installed(const MemorySystem* m) noexcept nogil
cdef void l2_update_class(MemorySystem* m, uint32_t entry) noexcept nogil
cdef int64_t copy_sectors(MemorySystem* m, int64_t first_sector, int64_t end_sector, bint write, int64_t begin_ps,
                          int64_t bytes_per_s) noexcept nogil
cdef void l2_install(MemorySystem* m, int64_t first_sector, int64_t end_sector, int64_t now) noexcept nogil
