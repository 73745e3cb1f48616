"""Allocations begin and end."""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memmove

from buddysim.replay.lazy_array import lazy_zeros

from buddysim.replay.engine.arena cimport arena_zeroed

cdef enum:
    PAGE_BITS = 6               # log2 of the entries of a page


cdef object regions_init(Arena* arena, MemorySystem* m, regions):
    """One region for each row (first entry, end entry, placement, kept sectors), none of them live.

    Returns what is to be kept as long as the system.
    """
    cdef int64_t[:, ::1] rows = regions
    cdef uint8_t[::1] pages = lazy_zeros(((m.n_entries >> PAGE_BITS) + 1) * sizeof(uint32_t))
    cdef int i
    m.n_regions = <int>rows.shape[0]
    m.regions = <Region*>arena_zeroed(arena, m.n_regions + 2, sizeof(Region)) + 1
    m.live = <uint32_t*>arena_zeroed(arena, m.n_regions + 1, sizeof(uint32_t))
    m.region_of_page = <uint32_t*>&pages[0]
    for i in range(m.n_regions):
        m.regions[i].first_entry = <uint32_t>rows[i, 0]
        m.regions[i].entries = <uint32_t>(rows[i, 1] - rows[i, 0])
        m.regions[i].placement, m.regions[i].kept = <int>rows[i, 2], <int>rows[i, 3]
        m.regions[i].written_last = ~<uint64_t>0
    (m.regions - 1).entries = ~<uint32_t>0
    m.last_region = m.regions + m.n_regions
    return pages


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


cdef void region_begin(MemorySystem* m, Region* region, uint64_t first_line, int64_t first_piece, int64_t end_piece) noexcept nogil:
    """A region is live from now on, `first_line` (address / 128) being where the trace has it.

    Its entries from `first_piece` to before `end_piece`, multiples of a page, can't be looked up before `region_touch`.
    """
    cdef uint32_t number = <uint32_t>(region - m.regions) + 1
    cdef int64_t first = region.first_entry >> PAGE_BITS, last, position
    cdef uint32_t* link = &m.region_of_page[first]
    last = (<int64_t>region.first_entry + region.entries - 1) >> PAGE_BITS
    while link[0] and m.regions[<int64_t>link[0] - 1].first_entry < region.first_entry:
        link = &m.regions[<int64_t>link[0] - 1].next
    region.next = link[0]
    link[0] = number
    if last > first:            # nothing is behind it in its first page
        region.next = m.region_of_page[last]
        m.region_of_page[last] = number
    region.first_piece, region.end_piece = <uint32_t>first_piece, <uint32_t>end_piece
    fill_pages(m, region, region.first_entry, first_piece, number)
    fill_pages(m, region, end_piece, <int64_t>region.first_entry + region.entries, number)
    region.first_line = first_line
    position = live_position(m, region)
    memmove(m.live + position + 1, m.live + position, <size_t>(m.n_live - position) * sizeof(uint32_t))
    m.live[position] = number - 1
    m.n_live += 1


cdef void region_touch(MemorySystem* m, Region* region, int64_t first_entry, int64_t end_entry, bint live) noexcept nogil:
    """Pieces of a region can be looked up from now on; or, before it ends, no longer."""
    fill_pages(m, region, first_entry, end_entry, <uint32_t>(region - m.regions) + 1 if live else 0)


cdef inline void fill_pages(MemorySystem* m, const Region* region, int64_t first_entry, int64_t end_entry,
                            uint32_t number) noexcept nogil:
    """Sets the pages of a region's entries, but for its first and its last page, which may have others in them."""
    cdef int64_t page, first = (region.first_entry >> PAGE_BITS) + 1, last
    last = (<int64_t>region.first_entry + region.entries - 1) >> PAGE_BITS
    for page in range(max(first, first_entry >> PAGE_BITS), min(last, (end_entry + (1 << PAGE_BITS) - 1) >> PAGE_BITS)):
        m.region_of_page[page] = number


cdef void region_end(MemorySystem* m, Region* region) noexcept nogil:
    """A region is live no longer; none of its pieces can be looked up any more."""
    cdef uint32_t number = <uint32_t>(region - m.regions) + 1
    cdef int64_t first = region.first_entry >> PAGE_BITS, last, position
    cdef uint32_t* link = &m.region_of_page[first]
    last = (<int64_t>region.first_entry + region.entries - 1) >> PAGE_BITS
    while link[0] != number:
        link = &m.regions[<int64_t>link[0] - 1].next
    link[0] = region.next if last == first else 0
    fill_pages(m, region, region.first_entry, region.first_piece, 0)
    fill_pages(m, region, region.end_piece, <int64_t>region.first_entry + region.entries, 0)
    if last > first:
        m.region_of_page[last] = region.next
    region.next = 0
    position = live_position(m, region)
    m.n_live -= 1
    memmove(m.live + position, m.live + position + 1, <size_t>(m.n_live - position) * sizeof(uint32_t))
    if m.last_region == region:
        m.last_region = m.regions + m.n_regions
