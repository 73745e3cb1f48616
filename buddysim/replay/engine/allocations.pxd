"""Which allocations are live: where the trace has them, and which one holds an entry.

A region is an allocation at its place in the run's entries. Regions may have the same place, at different times. The live ones are
found by address in a sorted list (`MemorySystem.live`), and by entry through `region_of_page`: for every 64 entries the live region
that reaches into them first. Behind a region the one that begins next in the 64 entries in which it ends is its `next`. Both are
numbers + 1, so that 0 is none: memory that nothing has touched.

Two regions are no allocations: number -1 holds every entry, and is what an entry without an allocation would find; number
`n_regions` holds none. The pieces of large allocations (`replay/lazy_allocations.py`) are in `region_of_page` once they have been touched.
"""
from libc.stdint cimport int64_t, uint64_t

from buddysim.replay.engine.arena cimport Arena
from buddysim.replay.engine.memory cimport MemorySystem, Region


cdef inline Region* region_of_line(const MemorySystem* m, uint64_t line) noexcept nogil:
    """The live region that holds a line of the trace (address / 128), or NULL."""
    cdef int64_t low = 0, high = m.n_live, middle
    cdef Region* region
    while low < high:           # the first region behind the line
        middle = (low + high) // 2
        if m.regions[m.live[middle]].first_line <= line:
            low = middle + 1
        else:
            high = middle
    if not low:
        return NULL
    region = m.regions + m.live[low - 1]
    return region if line - region.first_line < region.entries else NULL


cdef object regions_init(Arena* arena, MemorySystem* m, regions)
cdef void region_begin(MemorySystem* m, Region* region, uint64_t first_line, int64_t first_piece, int64_t end_piece) noexcept nogil
cdef void region_touch(MemorySystem* m, Region* region, int64_t first_entry, int64_t end_entry, bint live) noexcept nogil
cdef void region_end(MemorySystem* m, Region* region) noexcept nogil
