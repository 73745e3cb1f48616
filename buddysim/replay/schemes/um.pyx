"""`um`: Unified Memory with oversubscription. A model, not the hardware that the paper measured (POWER9, 75 GB/s link).

Pages of 64 KB migrate on fault. Faults are handled in batches, one after the other, each `um.fault_latency` long; within a 2 MB
block a binary tree decides what is prefetched: the largest subtree of which more than half is then resident is fetched whole (the
rule that NVIDIA's driver is described to follow). The page evicted to make room is the least recently missed one; it goes back
over the link whole. The run begins with the pages of lowest address resident, as many as fit.
"""
from fractions import Fraction
from typing import Annotated

from libc.stdint cimport int32_t, int64_t, uint32_t
from pydantic import Field, model_validator

from buddysim.machine import fields
from buddysim.machine.section import Duration, Section
from buddysim.machine.units import format_size, parse_time
from buddysim.replay.engine.arena cimport Arena, arena_zeroed
from buddysim.replay.engine.cache cimport Line
from buddysim.replay.engine.dram cimport larger
from buddysim.replay.engine.kinds cimport ENTRY_BYTES, HOST, SCHEME_TRAFFIC
from buddysim.replay.engine.memory cimport MemorySystem, Region, Slice, link_read, link_write, region_of
from buddysim.replay.engine.locations cimport LineLocation
from buddysim.replay.engine.scheme cimport SchemeBase
from buddysim.replay.engine.uncompressed cimport raw_fill, raw_writeback

ORDER = 40

cdef enum:                      # values of `ready_ps` that are not times
    AWAY = -1                   # in host memory
    NOT_MANAGED = -2            # no allocation of device memory lies there

cdef struct Pages:
    int64_t n
    int64_t capacity
    int64_t resident
    int entries_shift           # log2 of entries per page
    int pages_per_block         # pages under one prefetch tree
    int64_t fault_ps
    int fault_batch             # most faults of a batch
    int64_t batch_start_ps
    int64_t batch_end_ps
    int batch_faults
    int32_t* newer              # LRU list over the resident pages; n is the sentinel
    int32_t* older
    int64_t* ready_ps           # when a page is resident, AWAY or NOT_MANAGED
    int64_t faults
    int64_t prefetched
    int64_t evicted


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


cdef inline void evict_oldest(MemorySystem* m, Pages* pages, int64_t t) noexcept nogil:
    cdef int64_t page = pages.newer[pages.n]
    unlink_page(pages, page)
    pages.ready_ps[page] = AWAY
    pages.resident -= 1
    pages.evicted += 1
    link_write(m, <int64_t>ENTRY_BYTES << pages.entries_shift, SCHEME_TRAFFIC, t)


cdef inline void migrate_in(MemorySystem* m, Pages* pages, int64_t page, int64_t t) noexcept nogil:
    if pages.resident == pages.capacity:
        evict_oldest(m, pages, t)
    pages.resident += 1
    link_newest(pages, page)
    pages.ready_ps[page] = link_read(m, <int64_t>ENTRY_BYTES << pages.entries_shift, SCHEME_TRAFFIC, t)


cdef inline int64_t fault(MemorySystem* m, Pages* pages, int64_t page, int64_t t) noexcept nogil:
    """Migrates a page in, with what the tree prefetches; returns when it is resident."""
    cdef int64_t first, last, other, size, resident, best_first = page, best_last = page + 1
    pages.faults += 1
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
    migrate_in(m, pages, page, pages.batch_end_ps)
    for other in range(best_first, best_last):
        if pages.ready_ps[other] == AWAY:
            migrate_in(m, pages, other, pages.batch_end_ps)
            pages.prefetched += 1
    return pages.ready_ps[page] if pages.ready_ps[page] >= 0 else pages.batch_end_ps


cdef inline int64_t page_ready(MemorySystem* m, uint32_t entry, int64_t t) noexcept nogil:
    """When the page of an entry is resident for an access at `t`."""
    cdef Pages* pages = <Pages*>m.scheme_state
    cdef int64_t page = entry >> pages.entries_shift
    if pages.ready_ps[page] < 0:
        return fault(m, pages, page, t)
    unlink_page(pages, page)
    link_newest(pages, page)
    return larger(t, pages.ready_ps[page])


cdef int64_t fill(MemorySystem* m, Slice* slice, const LineLocation* at, unsigned int* sectors,
                  int64_t t) noexcept nogil:
    cdef Region* region = region_of(m, at.entry)
    region.fills += 1
    if region.placement != HOST:
        t = page_ready(m, at.entry, t)
    return raw_fill(m, region, at, sectors[0], t)


cdef int64_t writeback(MemorySystem* m, Slice* slice, uint32_t entry, Line line, int64_t t) noexcept nogil:
    cdef Region* region = region_of(m, entry)
    region.writebacks += 1
    if region.placement != HOST:
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
    SUMMARY = "Unified Memory, pages migrating on fault into device memory that is too small"
    assumptions = {
        "um": "Unified Memory is a model (fault batches, tree prefetch, LRU eviction), not the hardware the paper measured; "
        "the run begins with the lowest pages resident",
    }
    COUNTERS = {
        "um.page_faults": "faults: accesses to a page that was not in device memory",
        "um.pages_prefetched": "pages: migrated in with a faulting one",
        "um.pages_evicted": "pages: written back to make room",
        "link.migration_in_bytes": "B: pages that Unified Memory migrated in",
        "link.migration_out_bytes": "B: pages that it evicted",
    }
    cdef Pages shape            # what the machine says of the pages

    def __cinit__(self):
        self.fill, self.writeback = fill, writeback

    def configure(self, machine, allocated_entries):
        cdef int64_t fitting = int(allocated_entries * (1 - Fraction(machine.um.oversubscription)))
        self.shape.entries_shift = (machine.um.page // ENTRY_BYTES).bit_length() - 1
        self.shape.capacity = larger(1, fitting >> self.shape.entries_shift)
        self.shape.pages_per_block = machine.um.prefetch // machine.um.page
        self.shape.fault_ps, self.shape.fault_batch = machine.ps(machine.um.fault_latency), machine.um.fault_batch

    cdef int prepare(self, MemorySystem* m, Arena* arena) except -1:
        """Makes the pages of lowest address resident."""
        cdef Pages* pages = <Pages*>arena_zeroed(arena, 1, sizeof(Pages))
        cdef int64_t page, last
        cdef int region
        pages[0] = self.shape
        pages.n = (m.n_entries >> pages.entries_shift) + 1
        pages.batch_start_ps = -1
        pages.newer = <int32_t*>arena_zeroed(arena, pages.n + 1, sizeof(int32_t))
        pages.older = <int32_t*>arena_zeroed(arena, pages.n + 1, sizeof(int32_t))
        pages.ready_ps = <int64_t*>arena_zeroed(arena, pages.n + 1, sizeof(int64_t))
        pages.newer[pages.n] = pages.older[pages.n] = <int32_t>pages.n
        for page in range(pages.n):
            pages.ready_ps[page] = NOT_MANAGED
        for region in range(m.n_regions):
            if m.regions[region].placement != HOST:
                last = m.regions[region].first_entry + m.regions[region].entries - 1 >> pages.entries_shift
                for page in range(m.regions[region].first_entry >> pages.entries_shift, last + 1):
                    pages.ready_ps[page] = AWAY
        for page in range(pages.n):
            if pages.ready_ps[page] == AWAY and pages.resident < pages.capacity:
                pages.ready_ps[page] = 0
                pages.resident += 1
                link_newest(pages, page)
        m.scheme_state = pages
        return 0

    cdef dict counters(self, const MemorySystem* m):
        cdef const Pages* pages = <const Pages*>m.scheme_state
        return {
            "um.page_faults": pages.faults,
            "um.pages_prefetched": pages.prefetched,
            "um.pages_evicted": pages.evicted,
            "link.migration_in_bytes": m.count.link_read[<int>SCHEME_TRAFFIC],
            "link.migration_out_bytes": m.count.link_write[<int>SCHEME_TRAFFIC],
        }
