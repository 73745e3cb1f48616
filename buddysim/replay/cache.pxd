"""A sectored, set-associative cache with true LRU: the tags and states of an L1, an L2 slice or a metadata slice.

One `SectorCache` holds `units` caches of equal shape side by side (one per SM or per slice). A tag is an entry number (L1, L2)
or a metadata line number. Each line has four sectors, each with a valid, a dirty and a partial bit: partial means dirty, but not
every byte known (a store wrote a part of a sector that was not there), so it can't be read before it is merged.

What an access looks at lies together: a set is one row of tags, then of stamps, then of lines, 64 B (one line of the host's
cache) for eight ways. Only a line with sectors on their way has a time, elsewhere.
"""
from libc.stdint cimport int16_t, int64_t, uint16_t, uint32_t

from buddysim.replay.hints cimport prefetch, unlikely
from buddysim.replay.setops cimport SECTOR_COUNT, STAMP_NEVER, set_match, set_oldest

ctypedef uint16_t Line      # sectors' states, a bit per sector: valid | dirty << DIRTY | partial << PARTIAL | coming << COMING

cdef enum:
    DIRTY = 4
    PARTIAL = 8
    COMING = 12             # valid sectors that are there only from `ready_ps` on

cdef struct Row:            # one set
    uint32_t* tags
    int16_t* stamps
    Line* lines
    int64_t set             # its number, counted over all units

cdef struct SectorCache:
    int units
    int sets                # of each unit
    int set_bits            # log2 of sets where that is a power of two, else -1
    int ways
    int padded_ways
    char* rows              # [units][sets], 8 B * padded_ways each: tags, stamps (order of last use in the set, 0 = empty), lines
    int64_t* ready_ps       # [units][sets][padded_ways]: when the sectors that are coming are there
    int16_t* clocks         # [units][sets]: the stamp last given out


cdef int16_t cache_renumber(SectorCache* cache, const Row* row) noexcept nogil


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


cdef inline Row cache_row(const SectorCache* cache, int64_t set) noexcept nogil:
    """Where a set's ways are."""
    cdef int64_t ways = cache.padded_ways
    cdef char* row = cache.rows + set * ways * 8
    return Row(<uint32_t*>row, <int16_t*>(row + 4 * ways), <Line*>(row + 6 * ways), set)


cdef inline int64_t* cache_ready_ps(const SectorCache* cache, int64_t set, int way) noexcept nogil:
    """When the coming sectors of a way are there."""
    return cache.ready_ps + set * cache.padded_ways + way


cdef inline void cache_prefetch(const SectorCache* cache, int64_t set) noexcept nogil:
    """Has the host fetch a set's row."""
    cdef const char* row = cache.rows + set * 8 * cache.padded_ways
    prefetch(row)
    if cache.padded_ways > 8:
        prefetch(row + 64)


cdef inline int cache_find(const SectorCache* cache, const Row* row, uint32_t tag) noexcept nogil:
    """The way of the set that holds `tag`, or -1."""
    return set_match(row.tags, cache.padded_ways, tag)


cdef inline int cache_victim(const SectorCache* cache, const Row* row) noexcept nogil:
    """The least recently used way of the set (an empty one first)."""
    return set_oldest(row.stamps, cache.padded_ways)


cdef inline void cache_touch(SectorCache* cache, const Row* row, int way) noexcept nogil:
    """Makes the way the most recently used one of its set."""
    cdef int16_t stamp = cache.clocks[row.set]
    if unlikely(stamp == STAMP_NEVER - 1):
        stamp = cache_renumber(cache, row)
    stamp += 1
    cache.clocks[row.set] = stamp
    row.stamps[way] = stamp


cdef inline void cache_install(SectorCache* cache, const Row* row, int way, uint32_t tag) noexcept nogil:
    """Gives the way to `tag`, with no sector valid."""
    row.tags[way] = tag
    row.lines[way] = 0
    cache_touch(cache, row, way)


cdef inline void cache_coming(SectorCache* cache, const Row* row, int way, unsigned int sectors, int64_t now,
                              int64_t ready) noexcept nogil:
    """Sectors become valid, their data there from `ready` on. A line knows one such time: the latest of those still ahead."""
    cdef unsigned int line = row.lines[way]
    cdef unsigned int coming = sectors
    cdef int64_t* ready_ps = cache_ready_ps(cache, row.set, way)
    if line >> COMING and ready_ps[0] > now:
        coming |= line >> COMING
        ready = ready if ready > ready_ps[0] else ready_ps[0]
    ready_ps[0] = ready
    row.lines[way] = <Line>(line & ((1 << COMING) - 1) | sectors | coming << COMING)


cdef inline unsigned int cache_not_yet(const SectorCache* cache, const Row* row, int way, int64_t now) noexcept nogil:
    """Valid sectors whose data are still on their way at `now`."""
    cdef unsigned int coming = row.lines[way] >> COMING
    return coming if coming and cache_ready_ps(cache, row.set, way)[0] > now else 0


cdef inline int sector_count(unsigned int mask) noexcept nogil:
    """Number of sectors in a mask's lower four bits."""
    return SECTOR_COUNT[mask & 15]


cdef int cache_init(SectorCache* cache, int units, int sets, int ways) except -1
cdef void cache_clear_unit(SectorCache* cache, int unit) noexcept nogil
cdef void cache_free(SectorCache* cache) noexcept
