"""Single parts of the replay engine as Python sees them. Tests compare them with `tests/reference/replay/primitives/`."""
from libc.stdint cimport int64_t, uint32_t

from buddysim.replay.primitives.arena cimport Arena, arena_free
from buddysim.replay.primitives.cache cimport (
    CacheSet, SectorCache, cache_find, cache_init, cache_replace, cache_set, cache_set_offset, cache_touch,
)
from buddysim.replay.primitives.division cimport Divisor, divide, divisor, remainder
from buddysim.replay.primitives.events cimport KEY_NEVER, NEVER, Events, events_init, events_set, key_number, key_time
from buddysim.replay.primitives.horizon cimport MAX_PAGES, Horizon, horizon_free, horizon_init
from buddysim.replay.primitives.port cimport Port, port_peek, port_transfer
from buddysim.replay.primitives.reservation_table cimport (
    ReservationTable, SlotGrid, release_slot, reserve_slots, slot_grid, table_init,
)
from buddysim.replay.primitives.set_search cimport SET_EMPTY


cdef class LruTags:
    """One cache.

    Parameters
    ----------
    sets, ways : shape of the cache
    """

    cdef Arena arena
    cdef SectorCache cache

    def __cinit__(self, int sets, int ways):
        cache_init(&self.arena, &self.cache, 1, sets, ways)

    def __dealloc__(self):
        arena_free(&self.arena)

    def access(self, uint32_t tag, unsigned int sectors):
        """Accesses sectors of a line.

        Returns
        -------
        tuple of the sectors that hit (mask) and the evicted tag; -1: none, as the line hit or the way was empty
        """
        cdef CacheSet set = cache_set(&self.cache, cache_set_offset(&self.cache, 0, tag))
        cdef int64_t way = cache_find(&self.cache, &set, tag)
        cdef int64_t evicted = -1
        cdef uint32_t evicted_tag
        cdef unsigned int hits = 0
        if way < 0:
            way = cache_replace(&self.cache, &set, tag, &evicted_tag)
            if evicted_tag != SET_EMPTY:
                evicted = evicted_tag
            set.lines[way] = 0
        else:
            hits = set.lines[way] & sectors
            cache_touch(&self.cache, &set, way)
        set.lines[way] |= sectors
        return hits, evicted


cdef class EventOrder:
    """The order of the engine's events.

    Parameters
    ----------
    n : number of events
    """

    cdef Arena arena
    cdef Events events

    def __cinit__(self, int n):
        events_init(&self.arena, &self.events, n)

    def __dealloc__(self):
        arena_free(&self.arena)

    def set(self, int number, time):
        """Changes the time of an event, in ps; None: never."""
        events_set(&self.events, number, NEVER if time is None else time)

    def first(self):
        """The earliest event.

        Returns
        -------
        tuple of its time in ps and its number; None if no event has a time
        """
        cdef int64_t key = self.events.first
        return None if key == KEY_NEVER else (key_time(key, self.events.bits), key_number(key, self.events.bits))


cdef class LonePort:
    """One port.

    Parameters
    ----------
    max_pages : pages of later buckets that it may have
    """

    cdef Port port
    cdef Horizon horizon

    def __cinit__(self, int64_t max_pages=MAX_PAGES):
        horizon_init(&self.horizon, max_pages)

    def __dealloc__(self):
        horizon_free(&self.horizon)

    def request(self, int64_t now_ps, int64_t t_ps, int64_t cost):
        """Sends a request of `cost` port units that arrives at `t_ps`, not before `now_ps`; returns its grant in ps."""
        cdef int64_t peeked_ps
        self.horizon.now_ps = now_ps
        peeked_ps = port_peek(&self.port, &self.horizon, t_ps, cost)
        t_ps = port_transfer(&self.port, &self.horizon, t_ps, cost)
        assert peeked_ps == t_ps or self.horizon.pushed
        return t_ps

    @property
    def pages(self):
        """Pages of later buckets."""
        return self.horizon.n_pages

    @property
    def pushed(self):
        """Requests that were granted and not recorded."""
        return self.horizon.pushed


cdef class BusReservations:
    """The bus of one pseudo-channel.

    Parameters
    ----------
    burst_ps : length of a slot, at least 2
    ccd_slots : slots between two bursts of a request, at most 56
    refresh_ps, refresh_interval_ps : duration and interval of refreshes; 0: none
    max_pages : pages of slots beyond the ring
    refresh_offset_ps : from a multiple of the interval to a refresh
    """

    cdef SlotGrid grid
    cdef ReservationTable table
    cdef Horizon horizon
    cdef int64_t ccd_slots

    def __cinit__(self, int64_t burst_ps, int64_t ccd_slots, int64_t refresh_ps=0, int64_t refresh_interval_ps=0,
                  int64_t max_pages=MAX_PAGES, int64_t refresh_offset_ps=0):
        self.grid, self.ccd_slots = slot_grid(burst_ps, refresh_ps, refresh_interval_ps), ccd_slots
        horizon_init(&self.horizon, max_pages)
        table_init(&self.grid, &self.table, refresh_offset_ps)

    def __dealloc__(self):
        horizon_free(&self.horizon)

    def reserve(self, int64_t now_ps, int64_t slot, int bursts):
        """Reserves slots for the bursts of a request, from `slot` on (not before `now_ps`); returns the first and the last."""
        cdef int64_t first, last
        self.horizon.now_ps = now_ps
        last = reserve_slots(&self.grid, &self.table, &self.horizon, slot, bursts, self.ccd_slots, &first)
        return first, last

    def release(self, int64_t now_ps, int64_t slot):
        """Releases a slot, unless a refresh has it."""
        self.horizon.now_ps = now_ps
        release_slot(&self.grid, &self.table, &self.horizon, slot)

    @property
    def pages(self):
        """Pages of slots beyond the ring."""
        return self.horizon.n_pages

    @property
    def pushed(self):
        """Slots that could not be recorded."""
        return self.horizon.pushed


def quotient_and_remainder(uint32_t by, uint32_t x):
    """`divide` and `remainder` of `x` by a divisor of 1 to 2^31.

    Returns
    -------
    tuple of two int
    """
    cdef Divisor prepared = divisor(by)
    return divide(prepared, x), remainder(prepared, x)
