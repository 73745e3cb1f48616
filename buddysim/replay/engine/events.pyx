"""Set-up of an order of events, and a class for tests that compare it with a list."""
from libc.stdint cimport int64_t

from buddysim.replay.engine.arena cimport Arena, arena_free, arena_zeroed


cdef int events_init(Arena* arena, Events* events, int n) except -1:
    """Creates `n` events without a time."""
    cdef int i, padded
    events.bits = (n - 1).bit_length()
    events.end_ps = end_of_time(events.bits)
    events.groups = ((n - 1) >> GROUP_BITS) + 1
    padded = (events.groups + KEYS_AT_ONCE - 1) // KEYS_AT_ONCE * KEYS_AT_ONCE
    events.keys = <int64_t*>arena_zeroed(arena, <size_t>events.groups << GROUP_BITS, sizeof(int64_t))
    events.firsts = <int64_t*>arena_zeroed(arena, padded, sizeof(int64_t))
    for i in range(events.groups << GROUP_BITS):
        events.keys[i] = KEY_NEVER
    for i in range(padded):
        events.firsts[i] = KEY_NEVER
    events.first = KEY_NEVER
    return 0


cdef class EventOrder:
    """The order of the engine's events, for tests.

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
