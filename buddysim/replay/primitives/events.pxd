"""The order of events: the next issue of each scheduler, and the earliest of all.

The key of an event is its time, with its number in the low bits: the smallest key is the earliest event, and the lowest number
among equal times. The minimum is taken over the keys of a group, then over the minima of all groups (`keys.h`), without a
branch that a CPU would mispredict.
"""
from libc.stdint cimport int64_t

from buddysim.replay.primitives.arena cimport Arena
from buddysim.replay.primitives.compiler_hints cimport unlikely
from buddysim.replay.primitives.extremes cimport min_i64

cdef extern from "keys.h" nogil:
    const int64_t KEY_BIAS
    const int64_t KEY_NEVER
    const int KEYS_AT_ONCE
    int64_t min_key(const int64_t* keys, int n) noexcept

cdef enum:
    NEVER = 0x7FFFFFFFFFFFFFFF
    GROUP_BITS = 4  # log2 of the events of a group

cdef struct Events:
    int bits         # of an event's number
    int64_t end_ps   # `end_of_time`
    int groups
    int64_t* keys    # [groups][16]
    int64_t* firsts  # [groups]: smallest key of each group
    int64_t first    # smallest key


cdef inline int64_t end_of_time(int bits) noexcept nogil:
    """First time that a key with `bits` bits for the number cannot represent: 5 hours for a hundred events."""
    return <int64_t>1 << (61 - bits)


cdef inline int64_t event_key(int64_t time, int64_t end_ps, int bits, int number) noexcept nogil:
    """The key of an event; KEY_NEVER for times from `end_ps`, which is `end_of_time(bits)`, on."""
    if unlikely(time >= end_ps):
        return KEY_NEVER
    return (time << bits | number) + KEY_BIAS


cdef inline int64_t key_time(int64_t key, int bits) noexcept nogil:
    """Time of an event."""
    if unlikely(key == KEY_NEVER):
        return NEVER
    return (key - KEY_BIAS) >> bits


cdef inline int key_number(int64_t key, int bits) noexcept nogil:
    """Number of an event."""
    return <int>(key & ((<int64_t>1 << bits) - 1))


cdef inline void events_remove(Events* events, int number) noexcept nogil:
    """Removes an event from the order, which is invalid until `events_insert`."""
    events.keys[number] = KEY_NEVER
    events.firsts[number >> GROUP_BITS] = KEY_NEVER


cdef inline void events_insert(Events* events, int number, int64_t time) noexcept nogil:
    """Inserts an event that was removed.

    No value stored here is read here: that would stall on store forwarding.
    """
    cdef int group = number >> GROUP_BITS
    cdef int64_t key = event_key(time, events.end_ps, events.bits, number)
    cdef int64_t first_of_group = min_i64(key, min_key(events.keys + (group << GROUP_BITS), 1 << GROUP_BITS))
    events.first = min_i64(first_of_group, min_key(events.firsts, events.groups))
    events.firsts[group] = first_of_group
    events.keys[number] = key


cdef inline void events_set(Events* events, int number, int64_t time) noexcept nogil:
    """Changes the time of an event."""
    events_remove(events, number)
    events_insert(events, number, time)


cdef int events_init(Arena* arena, Events* events, int n) except -1
