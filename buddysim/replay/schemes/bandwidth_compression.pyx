"""`bandwidth-compression`: compression between L2 and device memory only; no capacity is gained.

Entry sizes are known without a lookup. A fill of a compressed entry moves all of its sectors. A fill of a raw entry moves the
requested sectors only, or all of them with `compression.fetch_whole_raw_entry`.
"""
from libc.stdint cimport int64_t, uint32_t

from buddysim.replay.compressed import entries
from buddysim.replay.compressed.numbers import compressed_numbers

from buddysim.replay.compressed.entries cimport (
    CompressedEntries, compressed_fill, compressed_writeback, entries_counters, entries_init,
)
from buddysim.replay.memory.allocations cimport allocation_of
from buddysim.replay.memory.memory cimport FillOp, MemorySystem, AllocationState, Slice
from buddysim.replay.primitives.address_map_simd cimport LineLocation
from buddysim.replay.primitives.arena cimport Arena, arena_zeroed
from buddysim.replay.primitives.cache cimport Line
from buddysim.replay.primitives.kinds cimport HOST
from buddysim.replay.primitives.versions cimport cpu_is_newer, int64_on_newer
from buddysim.replay.schemes.base cimport SchemeBase
from buddysim.replay.schemes.uncompressed cimport raw_fill, raw_writeback

ORDER = 20


cdef inline int64_t fill(MemorySystem* m, Slice* slice, const LineLocation* at, unsigned int* sectors, int64_t t) noexcept nogil:
    cdef AllocationState* allocation = allocation_of(m, at.entry)
    allocation.fills += 1
    if allocation.placement == HOST:
        return raw_fill(m, allocation, at, sectors, t)
    return compressed_fill(m, allocation, slice, at, sectors, t, 4, NULL)


cdef int64_on_newer fill_newer_cpu(MemorySystem* m, Slice* slice, const LineLocation* at, unsigned int* sectors,
                                   int64_t t) noexcept nogil:
    return fill(m, slice, at, sectors, t)


cdef int64_t writeback(MemorySystem* m, Slice* slice, uint32_t entry, Line line, int new_class, int64_t t) noexcept nogil:
    cdef AllocationState* allocation = allocation_of(m, entry)
    allocation.writebacks += 1
    if allocation.placement == HOST:
        return raw_writeback(m, allocation, slice, entry, line, t)
    return compressed_writeback(m, allocation, slice, entry, line, new_class, t, 4, NULL)


cdef class Scheme(SchemeBase):
    SUMMARY = "compression between L2 and device memory, for bandwidth alone"
    uses_sizes = True
    checks_capacity = True
    COUNTERS, LAWS = entries.COUNTERS, entries.LAWS
    cdef dict numbers

    def __cinit__(self):
        self.fill, self.writeback = <FillOp>fill_newer_cpu if cpu_is_newer() else fill, writeback

    def configure(self, machine, allocated_entries, capacity_bytes):
        self.numbers = compressed_numbers(machine, machine.buddy.eight_byte_class)

    cdef int prepare(self, MemorySystem* m, Arena* arena) except -1:
        m.scheme_state = arena_zeroed(arena, 1, sizeof(CompressedEntries))
        return entries_init(<CompressedEntries*>m.scheme_state, self.numbers)

    cdef dict counters(self, const MemorySystem* m):
        return entries_counters(<const CompressedEntries*>m.scheme_state)
