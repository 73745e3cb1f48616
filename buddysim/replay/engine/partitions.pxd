"""An L2 in partitions: an SM reads through its own, which keeps what it reads of the others' lines.

A line's *home* is the slice that has its memory behind it; it alone holds dirty sectors. Each other partition has a slice in the
same place, which may hold a clean *copy*, in the same set. Loads look there first; stores and atomics go to the home, and what they
touch leaves all copies.
"""
from libc.stdint cimport int64_t, uint32_t

from buddysim.replay.engine.cache cimport CacheSet
from buddysim.replay.engine.address_map cimport CacheLocation
from buddysim.replay.engine.memory cimport MemorySystem


cdef int partitions_init(MemorySystem* m, dict n) except -1
cdef int invalidate_sectors(const MemorySystem* m, const CacheSet* set, int64_t way, unsigned int sectors) noexcept nogil
cdef bint has_replica(const MemorySystem* m, const CacheLocation* home, uint32_t entry) noexcept nogil
cdef void invalidate_replicas(const MemorySystem* m, const CacheLocation* home, uint32_t entry, unsigned int sectors) noexcept nogil
