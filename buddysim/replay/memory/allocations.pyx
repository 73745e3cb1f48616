"""Begin and end of allocations."""
from libc.stdint cimport uint8_t
from libc.string cimport memmove

from buddysim.replay.lazy_array import lazy_zeros

from buddysim.replay.primitives.arena cimport arena_zeroed

cdef enum:
    PAGE_BITS = 6  # log2 of the entries of a page


cdef object allocations_init(Arena* arena, MemorySystem* m, allocations):
    """Creates an allocation for each row (first entry, end entry, placement, device sectors); none is live.

    Returns an object that must live as long as the memory system.
    """
    cdef int64_t[:, ::1] rows = allocations
    cdef uint8_t[::1] pages = lazy_zeros(((m.n_entries >> PAGE_BITS) + 1) * sizeof(uint32_t))
    cdef int i
    m.n_allocations = <int>rows.shape[0]
    m.allocations = <AllocationState*>arena_zeroed(arena, m.n_allocations + 2, sizeof(AllocationState)) + 1
    m.live = <uint32_t*>arena_zeroed(arena, m.n_allocations + 1, sizeof(uint32_t))
    m.allocation_of_page = <uint32_t*>&pages[0]
    for i in range(m.n_allocations):
        m.allocations[i].first_entry = <uint32_t>rows[i, 0]
        m.allocations[i].entries = <uint32_t>(rows[i, 1] - rows[i, 0])
        m.allocations[i].placement, m.allocations[i].device_sectors = <int>rows[i, 2], <int>rows[i, 3]
        m.allocations[i].last_writer_launch = ~<uint64_t>0
    (m.allocations - 1).entries = ~<uint32_t>0
    m.last_allocation = m.allocations + m.n_allocations
    return pages


cdef void allocation_begin(MemorySystem* m, AllocationState* allocation, uint64_t first_line, int64_t first_lazy_entry,
                           int64_t end_lazy_entry) noexcept nogil:
    """Makes an allocation live; `first_line` is its address in the trace / 128.

    Its entries from `first_lazy_entry` to before `end_lazy_entry`, multiples of a page, can be looked up only after
    `allocation_materialize`.
    """
    cdef uint32_t number = <uint32_t>(allocation - m.allocations) + 1
    cdef int64_t first = allocation.first_entry >> PAGE_BITS, last, position
    cdef uint32_t* link = &m.allocation_of_page[first]
    last = (<int64_t>allocation.first_entry + allocation.entries - 1) >> PAGE_BITS
    while link[0] and m.allocations[<int64_t>link[0] - 1].first_entry < allocation.first_entry:
        link = &m.allocations[<int64_t>link[0] - 1].next
    allocation.next = link[0]
    link[0] = number
    if last > first:            # no allocation follows it in its first page
        allocation.next = m.allocation_of_page[last]
        m.allocation_of_page[last] = number
    allocation.first_lazy_entry, allocation.end_lazy_entry = <uint32_t>first_lazy_entry, <uint32_t>end_lazy_entry
    set_allocation_of_pages(m, allocation, allocation.first_entry, first_lazy_entry, number)
    set_allocation_of_pages(m, allocation, end_lazy_entry, <int64_t>allocation.first_entry + allocation.entries, number)
    allocation.first_line = first_line
    position = n_live_up_to(m, first_line)
    memmove(m.live + position + 1, m.live + position, <size_t>(m.n_live - position) * sizeof(uint32_t))
    m.live[position] = number - 1
    m.n_live += 1


cdef void allocation_materialize(MemorySystem* m, AllocationState* allocation, int64_t first_entry, int64_t end_entry,
                                 bint live) noexcept nogil:
    """Makes entries of an allocation available to lookups; or, with `live` false and before it ends, unavailable."""
    set_allocation_of_pages(m, allocation, first_entry, end_entry, <uint32_t>(allocation - m.allocations) + 1 if live else 0)


cdef inline void set_allocation_of_pages(MemorySystem* m, const AllocationState* allocation, int64_t first_entry, int64_t end_entry,
                                         uint32_t number) noexcept nogil:
    """Sets `allocation_of_page` for entries, except for the first and last page, which other allocations may share."""
    cdef int64_t page, first = (allocation.first_entry >> PAGE_BITS) + 1, last
    last = (<int64_t>allocation.first_entry + allocation.entries - 1) >> PAGE_BITS
    for page in range(max(first, first_entry >> PAGE_BITS), min(last, (end_entry + (1 << PAGE_BITS) - 1) >> PAGE_BITS)):
        m.allocation_of_page[page] = number


cdef void allocation_end(MemorySystem* m, AllocationState* allocation) noexcept nogil:
    """Ends an allocation; none of its lazy entries is available to lookups any more."""
    cdef uint32_t number = <uint32_t>(allocation - m.allocations) + 1
    cdef int64_t first = allocation.first_entry >> PAGE_BITS, last, position
    cdef uint32_t* link = &m.allocation_of_page[first]
    last = (<int64_t>allocation.first_entry + allocation.entries - 1) >> PAGE_BITS
    while link[0] != number:
        link = &m.allocations[<int64_t>link[0] - 1].next
    link[0] = allocation.next if last == first else 0
    set_allocation_of_pages(m, allocation, allocation.first_entry, allocation.first_lazy_entry, 0)
    set_allocation_of_pages(m, allocation, allocation.end_lazy_entry, <int64_t>allocation.first_entry + allocation.entries, 0)
    if last > first:
        m.allocation_of_page[last] = allocation.next
    allocation.next = 0
    position = n_live_up_to(m, allocation.first_line) - 1
    m.n_live -= 1
    memmove(m.live + position, m.live + position + 1, <size_t>(m.n_live - position) * sizeof(uint32_t))
    if m.last_allocation == allocation:
        m.last_allocation = m.allocations + m.n_allocations
