"""A sectored, set-associative cache with true LRU: the tags and states of an L1, an L2 slice or a metadata slice.

One `SectorCache` holds `units` caches of equal shape side by side (one per SM or per slice). A tag is an entry number (L1, L2)
or a metadata line number. Each line has four sectors, each with a valid, a dirty and a partial bit: partial means dirty, but not
every byte known (a store wrote a part of a sector that was not there), so it can't be read before it is merged.

What an access looks at lies together: a set is one row of tags, then of stamps, then of lines, 64 B (one line of the host's
cache) for up to eight ways. Only a line with sectors on their way has a time, elsewhere.
"""
from libc.stdint cimport int16_t, int64_t, uint32_t, uint64_t

from buddysim.replay.setops cimport STAMP_NEVER, Line, set_match, set_oldest

cdef extern from *:
    void prefetch "__builtin_prefetch"(const void* address) noexcept nogil

cdef struct SectorCache:
    int units
    int sets                # of each unit
    int set_bits            # log2 of sets where that is a power of two, else -1
    int ways
    int padded_ways
    char* rows              # [units][sets], 8 B * padded_ways each: tags, stamps (order of last use in the set, 0 = empty), lines
    int64_t* ready_ps       # [units][sets][padded_ways]: when the sectors that are coming are there
    int16_t* clocks         # [units][sets]: the stamp last given out


cdef inline uint32_t fold(uint32_t x) noexcept nogil:
    """Mixes the high bits of a line number into the low ones: what spreads strides over sets and slices."""
    x ^= x >> 15
    x *= <uint32_t>0x2C1B3C6D
    x ^= x >> 12
    x *= <uint32_t>0x297A2D39
    x ^= x >> 15
    return x


cdef inline int64_t cache_set(const SectorCache* cache, int unit, uint32_t local) noexcept nogil:
    """The set, counted over all units, for the line number `local` of unit `unit`."""
    cdef uint32_t index, sets = <uint32_t>cache.sets
    if cache.set_bits >= 0:
        index = (local ^ fold(local >> cache.set_bits)) & (sets - 1)
    else:
        index = (local % sets + fold(local / sets) % sets) % sets
    return <int64_t>unit * cache.sets + index


cdef inline uint32_t* cache_tags(const SectorCache* cache, int64_t set) noexcept nogil:
    """The tags of a set's ways."""
    return <uint32_t*>(cache.rows + set * 8 * cache.padded_ways)


cdef inline int16_t* cache_stamps(const SectorCache* cache, int64_t set) noexcept nogil:
    """The stamps of a set's ways."""
    return <int16_t*>(cache.rows + (set * 8 + 4) * cache.padded_ways)


cdef inline Line* cache_lines(const SectorCache* cache, int64_t set) noexcept nogil:
    """The sectors' states of a set's ways."""
    return <Line*>(cache.rows + (set * 8 + 6) * cache.padded_ways)


cdef inline int64_t* cache_ready_ps(const SectorCache* cache, int64_t set) noexcept nogil:
    """When the coming sectors of a set's ways are there."""
    return cache.ready_ps + set * cache.padded_ways


cdef inline void cache_prefetch(const SectorCache* cache, int64_t set) noexcept nogil:
    """Has the host fetch a set's row."""
    cdef const char* row = cache.rows + set * 8 * cache.padded_ways
    prefetch(row)
    if cache.padded_ways > 8:
        prefetch(row + 64)


cdef inline int cache_find(const SectorCache* cache, int64_t set, uint32_t tag) noexcept nogil:
    """The way of the set that holds `tag`, or -1."""
    return set_match(cache_tags(cache, set), cache.padded_ways, tag)


cdef inline int cache_victim(const SectorCache* cache, int64_t set) noexcept nogil:
    """The least recently used way of the set (an empty one first)."""
    return set_oldest(cache_stamps(cache, set), cache.padded_ways)


cdef inline void cache_touch(SectorCache* cache, int64_t set, int way) noexcept nogil:
    """Makes the way the most recently used one of its set."""
    if cache.clocks[set] == STAMP_NEVER - 1:
        cache_renumber(cache, set)
    cache.clocks[set] += 1
    cache_stamps(cache, set)[way] = cache.clocks[set]


cdef inline void cache_install(SectorCache* cache, int64_t set, int way, uint32_t tag) noexcept nogil:
    """Gives the way to `tag`, with no sector valid."""
    cache_tags(cache, set)[way] = tag
    cache_lines(cache, set)[way] = Line(0, 0, 0, 0)
    cache_touch(cache, set, way)


cdef inline void cache_coming(SectorCache* cache, int64_t set, int way, unsigned int sectors, int64_t now,
                              int64_t ready) noexcept nogil:
    """Sectors become valid, their data there from `ready` on. A line knows one such time: the latest of those still ahead."""
    cdef Line* line = cache_lines(cache, set) + way
    cdef int64_t* ready_ps = cache_ready_ps(cache, set) + way
    if line.coming and ready_ps[0] > now:
        line.coming |= sectors
        if ready > ready_ps[0]:
            ready_ps[0] = ready
    else:
        line.coming = sectors
        ready_ps[0] = ready
    line.valid |= sectors


cdef inline unsigned int cache_not_yet(const SectorCache* cache, int64_t set, int way, int64_t now) noexcept nogil:
    """Valid sectors whose data are still on their way at `now`."""
    cdef unsigned int coming = cache_lines(cache, set)[way].coming
    return coming if coming and cache_ready_ps(cache, set)[way] > now else 0


cdef inline int sector_count(unsigned int mask) noexcept nogil:
    """Number of sectors in a 4-bit mask."""
    return <int>((<uint64_t>0x4332322132212110 >> ((mask & 15) << 2)) & 15)


cdef void cache_renumber(SectorCache* cache, int64_t set) noexcept nogil
cdef int cache_init(SectorCache* cache, int units, int sets, int ways) except -1
cdef void cache_clear_unit(SectorCache* cache, int unit) noexcept nogil
cdef void cache_free(SectorCache* cache) noexcept
