"""Set-up of the metadata cache, locations of metadata lines, and their counters."""
from buddysim.replay.primitives.address_map_simd cimport lane_divisor
from buddysim.replay.primitives.arena cimport arena_zeroed
from buddysim.replay.primitives.cache cimport cache_init
from buddysim.replay.primitives.division cimport divisor
from buddysim.replay.primitives.kinds cimport SECTOR_BYTES

#: Counters of the metadata cache: unit, colon, definition.
COUNTERS = {
    "metadata.accesses": "lookups: Metadata lookups, one for each fill or write-back of a compressed entry.",
    "metadata.hits": "lookups: Metadata lookups that hit a valid line; MSHR merges do not count.",
    "metadata.mshr_merges": "lookups: Metadata lookups that join a miss in flight and wait for its line.",
    "metadata.misses": "lookups: Metadata lookups that fetch their line from device memory.",
    "metadata.speculative_fills": "fills: Fills that fetch device sectors before the entry's size is known.",
    "metadata.misspeculated_fills": "fills: Speculative fills that request at least one unneeded sector.",
    "metadata.misspeculated_bytes":
        "B: Unneeded data that speculative fills fetch, a part of `device.overfetch_bytes`.",
    "metadata.cancelled_bytes": "B: Unneeded data of speculative fills that is cancelled before it is fetched.",
    "device.metadata_bytes": "B: Metadata lines read from and written to device memory.",
}


cdef void locate_own(const void* state, const uint32_t* entries, int n, OwnWords* own) noexcept nogil:
    """Set, bank and row of the metadata of up to eight entries; `state`: the memory system."""
    cdef const MemorySystem* m = <const MemorySystem*>state
    cdef const MetadataCache* cache = metadata_of(m)
    cdef DeviceLocation location
    cdef int i
    if n == 8 and m.eight_at_a_time:
        locate_metadata_simd(&m.rules, &cache.lanes, entries, own)
        return
    for i in range(n):
        locate_metadata(m, cache, entries[i] >> cache.line_shift, &location)
        own.shorts[i], own.second[i] = <uint32_t>(location.bank - m.dram.banks), <uint32_t>location.row
        own.first[i] = metadata_set(cache, entries[i] >> cache.line_shift)


cdef int metadata_init(Arena* arena, MemorySystem* m, MetadataCache* cache, dict n) except -1:
    """Creates an empty metadata cache, and makes the engine locate lines for it; `n`: `metadata_numbers`."""
    cache.perfect, cache.latency_ps, cache.lookup_cost = n["perfect_metadata"], n["metadata_ps"], n["metadata_cost"]
    cache.speculate_on_miss, cache.speculate_on_pending = n["speculate_on_miss"], n["speculate_on_pending"]
    cache.line_sectors = n["metadata_line_sectors"]
    cache.line_shift = 5 + cache.line_sectors.bit_length()
    cache.first_entry = <uint32_t>m.n_entries
    cache.slices = divisor(n["metadata_slices"])
    cache.ports = <PaddedPort*>arena_zeroed(arena, n["metadata_slices"], sizeof(PaddedPort))
    cache_init(arena, &cache.lines, n["metadata_slices"], n["metadata_sets"], n["metadata_ways"])
    cache.slice_bytes = divisor(cache.lines.sets.by * cache.lines.set_bytes)
    cache.lanes.slices, cache.lanes.sets = lane_divisor(cache.slices.by), lane_divisor(cache.lines.sets.by)
    cache.lanes.set_bytes, cache.lanes.line_shift = cache.lines.set_bytes, cache.line_shift
    cache.lanes.line_sectors, cache.lanes.first_entry = cache.line_sectors, cache.first_entry
    if not cache.perfect:
        m.rules.locate_own, m.rules.own_state = locate_own, m
        m.own_sets.data, m.own_sets.unit_bytes, m.own_sets.ports = cache.lines.set_data, cache.slice_bytes, cache.ports
    return 0


cdef dict metadata_counters(const MemorySystem* m):
    """Values of `COUNTERS`."""
    cdef const BuddyState* state = <const BuddyState*>m.scheme_state
    cdef const MetadataCounters* count = &state.metadata.count
    cdef int64_t bursts = 0
    cdef int i
    for i in range(m.dram.n_pseudo):
        bursts += m.dram.pseudo[i].moved[<int>METADATA_READ] + m.dram.pseudo[i].moved[<int>METADATA_WRITE]
    return {
        "metadata.accesses": count.hits + count.mshr_merges + count.misses,
        "metadata.hits": count.hits,
        "metadata.mshr_merges": count.mshr_merges,
        "metadata.misses": count.misses,
        "metadata.speculative_fills": state.entries.count.speculative_fills,
        "metadata.misspeculated_fills": state.entries.count.misspeculated_fills,
        "metadata.misspeculated_bytes": SECTOR_BYTES * state.entries.count.misspeculated_sectors,
        "metadata.cancelled_bytes": SECTOR_BYTES * state.entries.count.cancelled_sectors,
        "device.metadata_bytes": SECTOR_BYTES * bursts,
    }
