"""Buddy's metadata cache: sizes of entries next to the L2 slices, and their lines in device memory.

A line located for the metadata cache has its set in `own[0]`, and bank and row of its metadata in `own_short` and `own[1]`.
"""
from libc.stdint cimport int64_t, uint32_t

from buddysim.replay.compressed.entries cimport CompressedEntries, SizeLookup
from buddysim.replay.dram.dram cimport DeviceLocation, dram_location, dram_prefetch
from buddysim.replay.dram.transfers cimport device_read, device_write
from buddysim.replay.memory.address_map cimport locate_row, swizzle
from buddysim.replay.memory.memory cimport MemorySystem, PaddedPort
from buddysim.replay.primitives.address_map_simd cimport LaneDivisor, LineLocation, LocationRules, OwnWords
from buddysim.replay.primitives.arena cimport Arena
from buddysim.replay.primitives.cache cimport (
    DIRTY, CacheSet, SectorCache, cache_find, cache_replace, cache_set, cache_set_offset, cache_touch,
)
from buddysim.replay.primitives.compiler_hints cimport likely, prefetch, unlikely
from buddysim.replay.primitives.division cimport Divisor, divide
from buddysim.replay.primitives.extremes cimport max_i64
from buddysim.replay.primitives.kinds cimport SCHEME_QUEUE, SCHEME_TRAFFIC, Queue, Traffic
from buddysim.replay.primitives.port cimport port_grant_time
from buddysim.replay.primitives.waits cimport count_wait

cdef extern from "metadata_lanes.h" nogil:
    ctypedef struct MetadataLanes:
        LaneDivisor slices
        LaneDivisor sets
        uint32_t set_bytes
        uint32_t line_shift
        uint32_t line_sectors
        uint32_t first_entry
    void locate_metadata_simd(const LocationRules* rules, const MetadataLanes* lanes, const uint32_t* entries,
                              OwnWords* own) noexcept      # eight entries

# This scheme's own kinds of traffic and queues, in the order of `TRAFFIC` and `QUEUES`.
cdef enum:
    METADATA_READ = SCHEME_TRAFFIC
    METADATA_WRITE = SCHEME_TRAFFIC + 1
    METADATA_PORT = SCHEME_QUEUE

# Lookups count hits, accesses that join a miss in flight (MSHR merges), and the rest, which miss.
cdef struct MetadataCounters:
    int64_t hits
    int64_t mshr_merges       # lookups whose line is in flight for an earlier miss
    int64_t misses

cdef struct MetadataCache

# A look-up whose metadata lie elsewhere than `metadata_set` says, or take a way there.
ctypedef SizeLookup (*InterleavedLookupOp)(MemorySystem* m, uint32_t entry, const LineLocation* at, bint write,
                                           int64_t t) noexcept nogil
ctypedef void (*FetchAheadOp)(MemorySystem* m, MetadataCache* cache, uint32_t line, int64_t t) noexcept nogil

cdef struct MetadataCache:
    bint perfect              # sizes are known without a lookup
    bint speculate_on_miss    # a fill whose lookup misses fetches device sectors before the size is known
    bint speculate_on_pending  # so does a fill whose metadata line is in flight
    int line_shift            # log2 of the entries that a line covers
    int line_sectors
    uint32_t first_entry      # entry number at which the metadata's range of device memory begins
    int64_t latency_ps        # of a lookup
    int64_t lookup_cost       # one lookup through a slice's port, in port units
    Divisor slices
    Divisor slice_bytes       # of the sets of a slice
    PaddedPort* ports         # [slices]
    SectorCache lines
    MetadataCounters count
    FetchAheadOp fetch_ahead  # after the request of a line that missed at `t`; NULL: nothing is fetched ahead
    void* prefetcher          # its state
    MetadataLanes lanes       # to locate eight lines at a time
    InterleavedLookupOp look_up    # with `metadata_cache.interleaving` (`interleaving`); NULL: `ideal`
    int64_t hop_ps            # from an L2 slice to metadata at another, and back again
    bint own_slices           # lines are cached at the L2 slices of the entries that are looked up
    uint32_t own_slice        # with `own_slices`: slice of the metadata cache of the current lookup

cdef struct BuddyState:
    CompressedEntries entries
    MetadataCache metadata


cdef inline MetadataCache* metadata_of(const MemorySystem* m) noexcept nogil:
    return &(<BuddyState*>m.scheme_state).metadata


cdef inline void locate_metadata(const MemorySystem* m, const MetadataCache* cache, uint32_t line,
                                 DeviceLocation* location) noexcept nogil:
    """Location of a metadata line: after all entries, spread over the pseudo-channels as entries are."""
    cdef uint32_t group = divide(m.dram.stripe_entries, line)
    locate_row(m, swizzle(m.dram.stripe_entries, line, group), cache.first_entry + line * cache.line_sectors / 4, location)


cdef inline uint32_t metadata_set(const MetadataCache* cache, uint32_t line) noexcept nogil:
    """Offset of a metadata line's set in the metadata cache."""
    cdef uint32_t local
    if unlikely(cache.own_slices):
        return cache_set_offset(&cache.lines, cache.own_slice, line)
    local = divide(cache.slices, line)
    return cache_set_offset(&cache.lines, swizzle(cache.slices, line, local), local)


cdef inline int64_t fetch_line(MemorySystem* m, MetadataCache* cache, uint32_t line, const DeviceLocation* location,
                               CacheSet* set, int64_t* way, int64_t t) noexcept nogil:
    """Fetches a metadata line at `t` into a way, which it evicts; returns its arrival."""
    cdef uint32_t evicted_line
    cdef DeviceLocation victim
    way[0] = cache_replace(&cache.lines, set, line, &evicted_line)
    prefetch(set.ready_ps + way[0])
    if set.lines[way[0]]:                   # dirty; metadata lines have no other state
        locate_metadata(m, cache, evicted_line, &victim)
        device_write(&m.dram, &m.waits, &victim, cache.line_sectors, <Traffic>METADATA_WRITE, max_i64(t, set.ready_ps[way[0]]))
        set.lines[way[0]] = 0
    if likely(cache.line_sectors == 1):     # without a loop over bursts
        set.ready_ps[way[0]] = device_read(&m.dram, &m.waits, location, 1, <Traffic>METADATA_READ, t)
    else:
        set.ready_ps[way[0]] = device_read(&m.dram, &m.waits, location, cache.line_sectors, <Traffic>METADATA_READ, t)
    return set.ready_ps[way[0]]


cdef inline void fetch_ahead_of_use(MemorySystem* m, MetadataCache* cache, uint32_t line, int64_t t) noexcept nogil:
    """Fetches a metadata line at `t`, if it is of an entry and neither present nor pending. It takes no time of a port."""
    cdef CacheSet set
    cdef DeviceLocation location
    cdef int64_t way
    if <int64_t>line << cache.line_shift >= m.n_entries:
        return
    set = cache_set(&cache.lines, metadata_set(cache, line))
    if cache_find(&cache.lines, &set, line) >= 0:
        return
    locate_metadata(m, cache, line, &location)
    fetch_line(m, cache, line, &location, &set, &way, t)


cdef inline SizeLookup look_up_in(MemorySystem* m, MetadataCache* cache, uint32_t entry, uint32_t set_offset,
                                  const LineLocation* at, bint write, int64_t t) noexcept nogil:
    """Looks up an entry's size in a set at `t`."""
    cdef uint32_t line = entry >> cache.line_shift
    cdef int64_t way, known_ps, grant_ps
    cdef DeviceLocation location
    cdef CacheSet set
    cdef bint speculative = False, missed
    set = cache_set(&cache.lines, set_offset)
    grant_ps = port_grant_time(&cache.ports[divide(cache.slice_bytes, set_offset)].port, &m.horizon, t, cache.lookup_cost)
    if unlikely(grant_ps > t):              # a branch, so that a CPU that predicts it need not wait for the port
        count_wait(&m.waits, <Queue>METADATA_PORT, grant_ps - t)
        t = grant_ps
    t += cache.latency_ps
    way = cache_find(&cache.lines, &set, line)
    missed = way < 0
    if missed:
        if at:
            dram_location(&m.dram, at.own_short, at.own[1], &location)
        else:
            locate_metadata(m, cache, line, &location)
        dram_prefetch(&location)
        cache.count.misses += 1
        known_ps = fetch_line(m, cache, line, &location, &set, &way, t)
        speculative = cache.speculate_on_miss
    else:
        cache_touch(&cache.lines, &set, way)
        known_ps = set.ready_ps[way]
        if known_ps <= t:
            cache.count.hits += 1
            known_ps = t
        else:
            cache.count.mshr_merges += 1
            speculative = cache.speculate_on_pending
    if write:
        set.lines[way] = 1 << DIRTY
    if missed and unlikely(cache.fetch_ahead != NULL):      # last: it may evict the line
        cache.fetch_ahead(m, cache, line, t)
    return SizeLookup(known_ps, t if speculative else known_ps, speculative)


cdef inline SizeLookup metadata_lookup(MemorySystem* m, uint32_t entry, const LineLocation* at, bint write,
                                       int64_t t) noexcept nogil:
    """Looks up an entry's size at `t`; `write` changes it. `at` is NULL if the entry has not been located."""
    cdef MetadataCache* cache = metadata_of(m)
    if cache.perfect:
        return SizeLookup(t, t, False)
    if unlikely(cache.look_up != NULL):
        return cache.look_up(m, entry, at, write, t)
    return look_up_in(m, cache, entry, at.own[0] if at else metadata_set(cache, entry >> cache.line_shift), at, write, t)


cdef int metadata_init(Arena* arena, MemorySystem* m, MetadataCache* cache, dict n) except -1
cdef dict metadata_counters(const MemorySystem* m)
