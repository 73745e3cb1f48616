"""An L2 in partitions: an SM reads through its own, which keeps what it reads of the others' lines.

A line's *home* is the slice that has its memory behind it; it alone holds dirty sectors. Each other partition has a slice in the
same place, which may hold a clean *copy*, in the same set. Loads look there first; stores and atomics go to the home, and what they
touch leaves all copies.
"""
from libc.stdint cimport int64_t, uint32_t

from buddysim.replay.engine.cache cimport Row
from buddysim.replay.engine.address_map cimport Spot
from buddysim.replay.engine.memory cimport MemorySystem


cdef int partitions_init(MemorySystem* m, dict n) except -1
cdef int drop_from(const MemorySystem* m, const Row* row, int64_t way, unsigned int sectors) noexcept nogil
cdef bint has_copy(const MemorySystem* m, const Spot* home, uint32_t entry) noexcept nogil
cdef void copies_leave(const MemorySystem* m, const Spot* home, uint32_t entry, unsigned int sectors) noexcept nogil
