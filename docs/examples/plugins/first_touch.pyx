"""`first-touch`: a page stays where there was free memory at its first miss, first in device, then in host memory."""
from typing import Annotated

from libc.stdint cimport int64_t, uint8_t, uint32_t
from pydantic import Field

from buddysim.machine import fields
from buddysim.machine.section import Section
from buddysim.replay.component.shown import ShownRow
from buddysim.replay.memory.allocations cimport allocation_of
from buddysim.replay.memory.memory cimport MemorySystem, AllocationState, Slice
from buddysim.replay.primitives.address_map_simd cimport LineLocation
from buddysim.replay.primitives.arena cimport Arena, arena_zeroed
from buddysim.replay.primitives.cache cimport Line
from buddysim.replay.primitives.kinds cimport HOST
from buddysim.replay.schemes.base cimport SchemeBase
from buddysim.replay.schemes.uncompressed cimport host_fill, host_writeback, raw_fill, raw_writeback

cdef enum:
    PAGE_BITS = 9               # log2 of the entries of a 64 KiB page
    IN_DEVICE = 1, IN_HOST = 2  # values of `homes`; 0: not touched yet

cdef struct Pages:
    int64_t capacity            # pages that fit device memory
    int64_t[3] count            # by home
    uint8_t* homes              # [pages]

cdef inline bint over_link(MemorySystem* m, AllocationState* allocation, uint32_t entry) noexcept nogil:
    cdef Pages* pages = <Pages*>m.scheme_state
    cdef uint8_t* home = pages.homes + (entry >> PAGE_BITS)
    if allocation.placement == HOST:
        return True
    if not home[0]:
        home[0] = IN_DEVICE if pages.count[IN_DEVICE] < pages.capacity else IN_HOST
        pages.count[home[0]] += 1
    return home[0] == IN_HOST

cdef int64_t fill(MemorySystem* m, Slice* l2, const LineLocation* at, unsigned int* sectors, int64_t t) noexcept nogil:
    cdef AllocationState* allocation = allocation_of(m, at.entry)
    allocation.fills += 1
    cdef bint over = over_link(m, allocation, at.entry)
    return host_fill(m, sectors[0], t) if over else raw_fill(m, allocation, at, sectors, t)

cdef int64_t writeback(MemorySystem* m, Slice* l2, uint32_t entry, Line line, int new_class, int64_t t) noexcept nogil:
    cdef AllocationState* allocation = allocation_of(m, entry)
    allocation.writebacks += 1
    cdef bint over = over_link(m, allocation, entry)
    return host_writeback(m, line, t) if over else raw_writeback(m, allocation, l2, entry, line, t)

class FirstTouch(Section):
    """The section `[first_touch]` of a machine file."""
    fitting: Annotated[float, fields.number(0.0, 1.0)] = Field(default=0.5, description="footprint fraction that fits")

cdef class Scheme(SchemeBase):
    SUMMARY = "pages stay in the memory that had space at their first miss"
    SECTIONS = {"first_touch": FirstTouch}
    COUNTERS = {"first_touch.device_pages": "pages: Device pages.", "first_touch.host_pages": "pages: Host pages."}
    SHOWN = (ShownRow("memory footprint", "host pages", "count", ("first_touch.host_pages",), "Pages in host memory."),)
    cdef int64_t capacity

    def __cinit__(self):
        self.fill, self.writeback = fill, writeback

    def configure(self, machine, allocated_entries, capacity_bytes):
        fitting = int(allocated_entries * machine.first_touch.fitting)
        self.capacity = (fitting if capacity_bytes is None else capacity_bytes // 128) >> PAGE_BITS

    def device_bytes(self, occupied_bytes):
        return min(occupied_bytes, (self.capacity << PAGE_BITS) * 128)

    cdef int prepare(self, MemorySystem* m, Arena* arena) except -1:
        cdef Pages* pages = <Pages*>arena_zeroed(arena, 1, sizeof(Pages))
        pages.capacity = self.capacity
        pages.homes = <uint8_t*>arena_zeroed(arena, (m.n_entries >> PAGE_BITS) + 1, 1)
        m.scheme_state = pages
        return 0

    cdef dict counters(self, const MemorySystem* m):
        cdef const Pages* pages = <const Pages*>m.scheme_state
        return {"first_touch.device_pages": pages.count[IN_DEVICE], "first_touch.host_pages": pages.count[IN_HOST]}
