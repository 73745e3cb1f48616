"""A partitioned L2: an SM reads through its local partition, which holds replicas of remote lines.

The *home slice* of a line is the one in front of its memory; only it holds dirty sectors. In each other partition, the slice
with the same index may hold a clean *replica*, in the same set. Loads look up the local partition first. Stores and atomics
access the home slice and invalidate their sectors in all replicas.
"""
from libc.stdint cimport int64_t, uint32_t

from buddysim.replay.memory.address_map cimport CacheLocation
from buddysim.replay.memory.memory cimport MemorySystem
from buddysim.replay.primitives.cache cimport CacheSet


cdef int partitions_init(MemorySystem* m, dict n) except -1
cdef int invalidate_sectors(const MemorySystem* m, const CacheSet* set, int64_t way, unsigned int sectors) noexcept nogil
cdef bint has_replica(const MemorySystem* m, const CacheLocation* home, uint32_t entry) noexcept nogil
cdef void invalidate_replicas(const MemorySystem* m, const CacheLocation* home, uint32_t entry, unsigned int sectors) noexcept nogil
