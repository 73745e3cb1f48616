"""Which allocations are live: where the trace has them, and which one holds an entry.

A region is an allocation at its place in the run's entries. Regions may have the same place, at different times. The live ones are
found by address in a sorted list (`MemorySystem.live`), and by entry through `allocation_of_page`: for every 64 entries the live region
that reaches into them first. Behind a region the one that begins next in the 64 entries in which it ends is its `next`. Both are
numbers + 1, so that 0 is none: memory that nothing has touched.

Two regions are no allocations: number -1 holds every entry, and is what an entry without an allocation would find; number
`n_allocations` holds none. The pieces of large allocations (`replay/lazy_allocations.py`) are in `allocation_of_page` once they have been touched.
"""
from libc.stdint cimport int64_t, uint64_t

from buddysim.replay.engine.arena cimport Arena
from buddysim.replay.engine.memory cimport MemorySystem, AllocationState


cdef inline AllocationState* allocation_of_line(const MemorySystem* m, uint64_t line) noexcept nogil:
    """The live region that holds a line of the trace (address / 128), or NULL."""
    cdef int64_t low = 0, high = m.n_live, middle
    cdef AllocationState* allocation
    while low < high:           # the first region behind the line
        middle = (low + high) // 2
        if m.allocations[m.live[middle]].first_line <= line:
            low = middle + 1
        else:
            high = middle
    if not low:
        return NULL
    allocation = m.allocations + m.live[low - 1]
    return allocation if line - allocation.first_line < allocation.entries else NULL


cdef object allocations_init(Arena* arena, MemorySystem* m, allocations)
cdef void allocation_begin(MemorySystem* m, AllocationState* allocation, uint64_t first_line, int64_t first_lazy_entry, int64_t end_lazy_entry) noexcept nogil
cdef void allocation_materialize(MemorySystem* m, AllocationState* allocation, int64_t first_entry, int64_t end_entry, bint live) noexcept nogil
cdef void allocation_end(MemorySystem* m, AllocationState* allocation) noexcept nogil
