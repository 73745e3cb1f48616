"""Allocations begin and end."""
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memmove

from buddysim.replay.engine.arena cimport arena_zeroed

cdef enum:
    PAGE_BITS = 6               # log2 of the entries of a page


cdef int regions_init(Arena* arena, MemorySystem* m, regions) except -1:
    """One region for each row (first entry, end entry, placement, kept sectors), none of them live."""
    cdef int64_t[:, ::1] rows = regions
    cdef int64_t page
    cdef int i
    m.n_regions = <int>rows.shape[0]
    m.regions = <Region*>arena_zeroed(arena, m.n_regions + 2, sizeof(Region))
    m.live = <uint32_t*>arena_zeroed(arena, m.n_regions + 1, sizeof(uint32_t))
    m.region_of_page = <uint32_t*>arena_zeroed(arena, (m.n_entries >> PAGE_BITS) + 1, sizeof(uint32_t))
    for page in range((m.n_entries >> PAGE_BITS) + 1):
        m.region_of_page[page] = m.n_regions
    for i in range(m.n_regions):
        m.regions[i].first_entry = <uint32_t>rows[i, 0]
        m.regions[i].entries = <uint32_t>(rows[i, 1] - rows[i, 0])
        m.regions[i].placement, m.regions[i].kept = <int>rows[i, 2], <int>rows[i, 3]
        m.regions[i].next = m.n_regions
        m.regions[i].written_last = ~<uint64_t>0
    m.regions[m.n_regions].entries = ~<uint32_t>0
    m.last_region = m.regions + m.n_regions + 1
    return 0


cdef int64_t live_position(const MemorySystem* m, const Region* region) noexcept nogil:
    """Where a region stands, or would stand, among the live ones."""
    cdef int64_t low = 0, high = m.n_live, middle
    while low < high:
        middle = (low + high) // 2
        if m.regions[m.live[middle]].first_line < region.first_line:
            low = middle + 1
        else:
            high = middle
    return low


cdef void region_begin(MemorySystem* m, Region* region, uint64_t first_line) noexcept nogil:
    """A region is live from now on, `first_line` (address / 128) being where the trace has it."""
    cdef uint32_t number = <uint32_t>(region - m.regions), none = m.n_regions
    cdef int64_t first = region.first_entry >> PAGE_BITS, last, page, position
    cdef uint32_t* link = &m.region_of_page[first]
    last = (<int64_t>region.first_entry + region.entries - 1) >> PAGE_BITS
    while link[0] != none and m.regions[link[0]].first_entry < region.first_entry:
        link = &m.regions[link[0]].next
    region.next = link[0]
    link[0] = number
    if last > first:            # nothing is behind it in its first page
        region.next = m.region_of_page[last]
        for page in range(first + 1, last + 1):
            m.region_of_page[page] = number
    region.first_line = first_line
    position = live_position(m, region)
    memmove(m.live + position + 1, m.live + position, <size_t>(m.n_live - position) * sizeof(uint32_t))
    m.live[position] = number
    m.n_live += 1


cdef void region_end(MemorySystem* m, Region* region) noexcept nogil:
    """A region is live no longer."""
    cdef uint32_t number = <uint32_t>(region - m.regions), none = m.n_regions
    cdef int64_t first = region.first_entry >> PAGE_BITS, last, page, position
    cdef uint32_t* link = &m.region_of_page[first]
    last = (<int64_t>region.first_entry + region.entries - 1) >> PAGE_BITS
    while link[0] != number:
        link = &m.regions[link[0]].next
    link[0] = region.next if last == first else none
    for page in range(first + 1, last):
        m.region_of_page[page] = none
    if last > first:
        m.region_of_page[last] = region.next
    region.next = none
    position = live_position(m, region)
    m.n_live -= 1
    memmove(m.live + position, m.live + position + 1, <size_t>(m.n_live - position) * sizeof(uint32_t))
    if m.last_region == region:
        m.last_region = m.regions + m.n_regions + 1
