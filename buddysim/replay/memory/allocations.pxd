"""Live allocations: lookup by address of the trace, and by entry.

An allocation has a range of the run's entries. Allocations may have one range at different times. A sorted list finds the live
ones by address (`MemorySystem.live`). `allocation_of_page` finds them by entry: it has, for each page of 64 entries, the live
allocation that reaches into the page first. `next` of an allocation is the one that begins next in its last page. Both are
numbers + 1; 0 is none, for memory that no access has reached.

Two sentinels are no allocations: number -1 contains every entry, and ends a search for an entry without an allocation; number
`n_allocations` contains none. Segments of lazy allocations (`replay/lazy_allocations.py`) enter `allocation_of_page` when they
are materialized.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from buddysim.replay.memory.memory cimport MemorySystem, AllocationState
from buddysim.replay.primitives.arena cimport Arena


cdef inline AllocationState* allocation_of(MemorySystem* m, uint32_t entry) noexcept nogil:
    """The live allocation that contains an entry; often that of the last lookup."""
    cdef AllocationState* allocation = m.last_allocation
    if entry - allocation.first_entry >= allocation.entries:
        allocation = m.allocations - 1 + m.allocation_of_page[entry >> 6]
        while entry - allocation.first_entry >= allocation.entries:
            allocation = m.allocations - 1 + allocation.next
        m.last_allocation = allocation
    return allocation


cdef inline int64_t n_live_up_to(const MemorySystem* m, uint64_t line) noexcept nogil:
    """Number of live allocations that begin at a line of the trace (address / 128) or before it."""
    cdef int64_t low = 0, high = m.n_live, middle
    while low < high:
        middle = (low + high) // 2
        if m.allocations[m.live[middle]].first_line <= line:
            low = middle + 1
        else:
            high = middle
    return low


cdef inline AllocationState* allocation_of_line(const MemorySystem* m, uint64_t line) noexcept nogil:
    """The live allocation that contains a line of the trace, or NULL."""
    cdef int64_t n = n_live_up_to(m, line)
    cdef AllocationState* allocation
    if not n:
        return NULL
    allocation = m.allocations + m.live[n - 1]
    return allocation if line - allocation.first_line < allocation.entries else NULL


cdef object allocations_init(Arena* arena, MemorySystem* m, allocations)
cdef void allocation_begin(MemorySystem* m, AllocationState* allocation, uint64_t first_line, int64_t first_lazy_entry,
                           int64_t end_lazy_entry) noexcept nogil
cdef void allocation_materialize(MemorySystem* m, AllocationState* allocation, int64_t first_entry, int64_t end_entry,
                                 bint live) noexcept nogil
cdef void allocation_end(MemorySystem* m, AllocationState* allocation) noexcept nogil
