"""`buddy`: Buddy Compression, with device sectors in device memory and buddy sectors behind the link.

The target ratio of an allocation gives the device sectors of its entries; an entry that overflows has buddy sectors, too. With
`buddy.bypass_1x`, allocations of target 1x are stored uncompressed and need no metadata.
"""
from libc.stdint cimport int64_t, uint32_t

from buddysim.base.errors import BuddysimError
from buddysim.replay.compressed import entries
from buddysim.replay.compressed.numbers import compressed_numbers
from buddysim.replay.schemes.buddy import carve_out, metadata_cache, shown
from buddysim.replay.schemes.buddy.keys import BuddyConfig, MetadataCacheConfig
from buddysim.replay.schemes.buddy.numbers import metadata_numbers

from buddysim.replay.compressed.entries cimport (
    CompressedCounters, compressed_fill, compressed_writeback, entries_counters, entries_init,
)
from buddysim.replay.memory.allocations cimport allocation_of
from buddysim.replay.memory.memory cimport FillOp, MemorySystem, AllocationState, Slice
from buddysim.replay.primitives.address_map_simd cimport LineLocation
from buddysim.replay.primitives.arena cimport Arena, arena_zeroed
from buddysim.replay.primitives.cache cimport Line
from buddysim.replay.primitives.kinds cimport COMPRESSED
from buddysim.replay.primitives.versions cimport cpu_is_newer, int64_on_newer
from buddysim.replay.schemes.base cimport SchemeBase
from buddysim.replay.schemes.buddy.interleaving cimport interleaving_init
from buddysim.replay.schemes.buddy.metadata_cache cimport BuddyState, metadata_counters, metadata_init, metadata_lookup
from buddysim.replay.schemes.buddy.prefetcher.base cimport MetadataPrefetcherBase
from buddysim.replay.schemes.uncompressed cimport raw_fill, raw_writeback

ORDER = 30


cdef inline int64_t fill(MemorySystem* m, Slice* slice, const LineLocation* at, unsigned int* sectors, int64_t t) noexcept nogil:
    cdef AllocationState* allocation = allocation_of(m, at.entry)
    allocation.fills += 1
    if allocation.placement == COMPRESSED:
        return compressed_fill(m, allocation, slice, at, sectors, t, allocation.device_sectors, metadata_lookup)
    return raw_fill(m, allocation, at, sectors, t)


cdef int64_on_newer fill_newer_cpu(MemorySystem* m, Slice* slice, const LineLocation* at, unsigned int* sectors,
                                   int64_t t) noexcept nogil:
    return fill(m, slice, at, sectors, t)


cdef int64_t writeback(MemorySystem* m, Slice* slice, uint32_t entry, Line line, int new_class, int64_t t) noexcept nogil:
    cdef AllocationState* allocation = allocation_of(m, entry)
    allocation.writebacks += 1
    if allocation.placement == COMPRESSED:
        return compressed_writeback(m, allocation, slice, entry, line, new_class, t, allocation.device_sectors, metadata_lookup)
    return raw_writeback(m, allocation, slice, entry, line, t)


cdef class Scheme(SchemeBase):
    SUMMARY = "Buddy Compression: sectors beyond the target ratio lie in buddy memory behind the link"
    uses_targets = True
    uses_sizes = True
    checks_capacity = True
    SECTIONS = {"metadata_cache": MetadataCacheConfig, "buddy": BuddyConfig}
    TRAFFIC = ("metadata_read", "metadata_write")
    QUEUES = ("metadata_port",)
    FOOTPRINT, ENGINE_COUNTERS, SHOWN = shown.FOOTPRINT, shown.ENGINE_COUNTERS, shown.SHOWN
    COUNTERS = {
        **metadata_cache.COUNTERS,
        "buddy.accesses": "accesses: Fills and write-backs that access buddy memory.",
        "buddy.fills": "fills: Fills that read buddy memory.",
        "buddy.writebacks": "write-backs: Write-backs that read or write buddy memory.",
        "buddy.access_fraction": "fraction: Buddy accesses divided by all fills and write-backs, 0 to 1; 0 if there are none.",
        **entries.COUNTERS,
    }
    LAWS = (
        "`metadata.accesses` = `metadata.hits` + `metadata.mshr_merges` + `metadata.misses`",
        "`buddy.accesses` = `buddy.fills` + `buddy.writebacks`",
        "`buddy.access_fraction` = `buddy.accesses` / (`l2.fills` + `l2.writebacks`)",
        "`device.read_bytes` + `device.write_bytes` + `device.metadata_bytes` = `device.bus_bytes` + `device.queued_write_bytes`",
        *entries.LAWS,
    )
    cdef dict compressed
    cdef dict metadata
    cdef MetadataPrefetcherBase prefetcher

    def __cinit__(self):
        self.fill, self.writeback = <FillOp>fill_newer_cpu if cpu_is_newer() else fill, writeback

    placement = staticmethod(carve_out.placement)
    entry_bytes = staticmethod(carve_out.entry_bytes)
    capacities = staticmethod(carve_out.capacities)
    allocation_counters = staticmethod(shown.allocation_counters)
    profile_options = staticmethod(carve_out.profile_options)

    def configure(self, machine, allocated_entries, capacity_bytes):
        self.compressed = compressed_numbers(
            machine, machine.buddy.eight_byte_class, machine.buddy.raw_sectors == "single")
        self.metadata = metadata_numbers(machine)
        self.prefetcher = machine.policies()["metadata prefetcher"]
        for misfit in self.prefetcher.misfits(machine):
            raise BuddysimError(f"{machine.name}: {misfit}")

    cdef int prepare(self, MemorySystem* m, Arena* arena) except -1:
        cdef BuddyState* state = <BuddyState*>arena_zeroed(arena, 1, sizeof(BuddyState))
        m.scheme_state = state
        entries_init(&state.entries, self.compressed)
        state.entries.cancel_misspeculated = self.metadata["cancel_misspeculated"]
        self.prefetcher.prepare(arena)
        state.metadata.fetch_ahead, state.metadata.prefetcher = self.prefetcher.fetch_ahead, self.prefetcher.state
        metadata_init(arena, m, &state.metadata, self.metadata)
        return interleaving_init(&state.metadata, self.metadata)

    cdef int64_t requests(self, const MemorySystem* m, int queue):
        cdef const BuddyState* state = <const BuddyState*>m.scheme_state
        return state.metadata.count.hits + state.metadata.count.mshr_merges + state.metadata.count.misses

    cdef dict counters(self, const MemorySystem* m):
        cdef const BuddyState* state = <const BuddyState*>m.scheme_state
        cdef const CompressedCounters* count = &state.entries.count
        cdef int64_t accesses = count.buddy_fills + count.buddy_writebacks, moves = 0
        cdef int i
        for i in range(m.n_allocations):
            moves += m.allocations[i].fills + m.allocations[i].writebacks
        return {
            **metadata_counters(m),
            "buddy.accesses": accesses,
            "buddy.fills": count.buddy_fills,
            "buddy.writebacks": count.buddy_writebacks,
            "buddy.access_fraction": <double>accesses / moves if moves else 0.0,
            **entries_counters(&state.entries),
        }
