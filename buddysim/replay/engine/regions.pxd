"""Which allocations are live: where the trace has them, and which one holds an entry.

A region is an allocation at its place in the run's entries. Regions may have the same place, at different times. The live ones are
found by address in a sorted list (`MemorySystem.live`), and by entry through `region_of_page`: for every 64 entries the live region
that reaches into them first. Behind a region the one that begins next in the 64 entries in which it ends is its `next`.

Two regions are no allocations: number `n_regions` holds every entry, and is what an entry without an allocation would find; number
`n_regions + 1` holds none.
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


cdef int regions_init(Arena* arena, MemorySystem* m, regions) except -1
cdef void region_begin(MemorySystem* m, Region* region, uint64_t first_line) noexcept nogil
cdef void region_end(MemorySystem* m, Region* region) noexcept nogil
