"""`um`: Unified Memory with oversubscription. A model, not the hardware that the paper measured (POWER9, 75 GB/s link).

Pages of 64 KB migrate on fault. Faults are handled in batches, one after the other, each `um.fault_latency` long; within a 2 MB
block a binary tree decides what comes along: the largest subtree of which more than half is then resident is fetched whole (the
rule that NVIDIA's driver is described to follow). A page that has to make room is the least recently missed one, and goes back
over the link whole. The run begins with the pages of lowest address resident, as many as fit.
"""
from libc.stdint cimport int32_t, int64_t, uint32_t

from typing import Annotated

from pydantic import Field, model_validator

from buddysim.machine import fields
from buddysim.machine.section import Duration, Section
from buddysim.machine.units import format_size, parse_time
from buddysim.replay.engine.cache cimport Line
from buddysim.replay.engine.dram cimport larger
from buddysim.replay.engine.memory cimport (
    MIGRATION_IN, MIGRATION_OUT, PLACE_HOST, MemorySystem, Pages, Region, Slice, link_read, link_write, region_of,
)
from buddysim.replay.engine.places cimport LinePlace
from buddysim.replay.engine.scheme cimport SchemeBase
from buddysim.replay.engine.uncompressed cimport raw_fill, raw_writeback

cdef enum:                      # of `ready_ps`, where it is no time
    AWAY = -1                   # in host memory
    NOT_MANAGED = -2            # no allocation of device memory lies there


cdef inline void unlink_page(Pages* pages, int64_t page) noexcept nogil:
    pages.newer[pages.older[page]] = pages.newer[page]
    pages.older[pages.newer[page]] = pages.older[page]


cdef inline void link_newest(Pages* pages, int64_t page) noexcept nogil:
    cdef int64_t sentinel = pages.n
    cdef int32_t newest = pages.older[sentinel]
    pages.older[page] = newest
    pages.newer[page] = <int32_t>sentinel
    pages.newer[newest] = <int32_t>page
    pages.older[sentinel] = <int32_t>page


cdef inline void evict_oldest(MemorySystem* m, int64_t t) noexcept nogil:
    cdef Pages* pages = &m.pages
    cdef int64_t page = pages.newer[pages.n]
    unlink_page(pages, page)
    pages.ready_ps[page] = AWAY
    pages.resident -= 1
    m.count.pages_evicted += 1
    link_write(m, <int64_t>128 << pages.entries_shift, MIGRATION_OUT, t)


cdef inline void bring_page(MemorySystem* m, int64_t page, int64_t t) noexcept nogil:
    cdef Pages* pages = &m.pages
    if pages.resident == pages.capacity:
        evict_oldest(m, t)
    pages.resident += 1
    link_newest(pages, page)
    pages.ready_ps[page] = link_read(m, <int64_t>128 << pages.entries_shift, MIGRATION_IN, t)


cdef inline int64_t fault(MemorySystem* m, int64_t page, int64_t t) noexcept nogil:
    """Has a page migrated; returns when it is there."""
    cdef Pages* pages = &m.pages
    cdef int64_t first, last, other, size, resident, best_first = page, best_last = page + 1
    m.count.page_faults += 1
    if t > pages.batch_start_ps or pages.batch_faults == pages.fault_batch:
        pages.batch_start_ps = larger(t, pages.batch_end_ps)
        pages.batch_end_ps = pages.batch_start_ps + pages.fault_ps
        pages.batch_faults = 0
    pages.batch_faults += 1
    size = 2
    while size <= pages.pages_per_block:
        first = page / size * size
        last = first + size if first + size < pages.n else pages.n
        resident = 1
        for other in range(first, last):
            resident += pages.ready_ps[other] >= 0
        if 2 * resident > size:
            best_first, best_last = first, last
        size *= 2
    bring_page(m, page, pages.batch_end_ps)
    for other in range(best_first, best_last):
        if pages.ready_ps[other] == AWAY:
            bring_page(m, other, pages.batch_end_ps)
            m.count.pages_prefetched += 1
    return pages.ready_ps[page] if pages.ready_ps[page] >= 0 else pages.batch_end_ps


cdef inline int64_t page_ready(MemorySystem* m, uint32_t entry, int64_t t) noexcept nogil:
    """When the page of an entry is resident for an access at `t`."""
    cdef Pages* pages = &m.pages
    cdef int64_t page = entry >> pages.entries_shift
    if pages.ready_ps[page] < 0:
        return fault(m, page, t)
    unlink_page(pages, page)
    link_newest(pages, page)
    return larger(t, pages.ready_ps[page])


cdef int64_t fill(MemorySystem* m, Slice* slice, const LinePlace* at, unsigned int* sectors,
                  int64_t t) noexcept nogil:
    cdef Region* region = region_of(m, at.entry)
    region.fills += 1
    if region.place != PLACE_HOST:
        t = page_ready(m, at.entry, t)
    return raw_fill(m, region, at, sectors[0], t)


cdef int64_t writeback(MemorySystem* m, Slice* slice, uint32_t entry, Line line, int64_t t) noexcept nogil:
    cdef Region* region = region_of(m, entry)
    region.writebacks += 1
    if region.place != PLACE_HOST:
        t = page_ready(m, entry, t)
    return raw_writeback(m, region, slice, entry, line, t)


class Um(Section):
    """Unified Memory with oversubscription: the section `[um]` of a machine file."""

    oversubscription: Annotated[float, fields.number(0.0, 0.999)] = Field(
        default=0.5, description="share of the footprint that does not fit device memory"
    )
    page: Annotated[int, fields.size("4 KiB", "2 MiB")] = Field(default=64 * 1024, description="page that migrates")
    prefetch: Annotated[int, fields.size("4 KiB", "1 GiB")] = Field(
        default=2 * 1024**2, description="largest block that the tree prefetcher migrates at once"
    )
    fault_latency: Duration = Field(default=parse_time("30 us"), description="cost of one fault batch")
    fault_batch: Annotated[int, fields.count(1, 1_000_000)] = Field(default=256, description="most faults of a batch")

    @model_validator(mode="after")
    def _pages_are_whole(self):
        for key, given in (("page", self.page), ("prefetch", self.prefetch)):
            if given & (given - 1):
                raise ValueError(f"{key} {format_size(given)} is not a power of two")
        if self.prefetch < self.page:
            raise ValueError(f"prefetch {format_size(self.prefetch)} is smaller than page {format_size(self.page)}")
        return self


cdef class Scheme(SchemeBase):
    SECTION = Um
    assumptions = {
        "um": "Unified Memory is a model (fault batches, tree prefetch, LRU eviction), not the hardware the paper measured; "
        "the run begins with the lowest pages resident",
    }

    def __cinit__(self):
        self.fill, self.writeback = fill, writeback

    cdef int prepare(self, MemorySystem* m) except -1:
        """Makes the lowest pages resident; the arrays are the engine's."""
        cdef Pages* pages = &m.pages
        cdef int64_t page, last
        cdef int region
        pages.newer[pages.n] = pages.older[pages.n] = <int32_t>pages.n
        for page in range(pages.n):
            pages.ready_ps[page] = NOT_MANAGED
        for region in range(m.n_regions):
            if m.regions[region].place != PLACE_HOST:
                last = m.regions[region].first_entry + m.regions[region].entries - 1 >> pages.entries_shift
                for page in range(m.regions[region].first_entry >> pages.entries_shift, last + 1):
                    pages.ready_ps[page] = AWAY
        for page in range(pages.n):
            if pages.ready_ps[page] == AWAY and pages.resident < pages.capacity:
                pages.ready_ps[page] = 0
                pages.resident += 1
                link_newest(pages, page)
        return 0
