"""The order of events: when each scheduler can issue next, and which of them is the first.

An event's key is its time with a number in its low bits: the smallest key is the earliest event, the lowest number of equal ones.
The smallest is found by comparing all keys of a group and then all groups' smallest (`keys.h`), without a branch that a CPU would
mispredict.
"""
from libc.stdint cimport int64_t

from buddysim.replay.engine.compiler_hints cimport unlikely
from buddysim.replay.engine.arena cimport Arena

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
    """From when on keys with so many bits for the number have no room: 5 hours for a hundred events."""
    return <int64_t>1 << (61 - bits)


cdef inline int64_t event_key(int64_t time, int64_t end_ps, int bits, int number) noexcept nogil:
    """The key of an event; `end_ps` is `end_of_time(bits)`, and from then on (NEVER, too) there is none."""
    if unlikely(time >= end_ps):
        return KEY_NEVER
    return (time << bits | number) + KEY_BIAS


cdef inline int64_t key_time(int64_t key, int bits) noexcept nogil:
    """When the event of a key is."""
    if unlikely(key == KEY_NEVER):
        return NEVER
    return (key - KEY_BIAS) >> bits


cdef inline int key_number(int64_t key, int bits) noexcept nogil:
    """Which event it is."""
    return <int>(key & ((<int64_t>1 << bits) - 1))


cdef inline int64_t min_i64(int64_t a, int64_t b) noexcept nogil:
    return a if a < b else b


cdef inline void events_remove(Events* events, int number) noexcept nogil:
    """Takes an event out of the order, which is invalid until `events_insert` puts it back."""
    events.keys[number] = KEY_NEVER
    events.firsts[number >> GROUP_BITS] = KEY_NEVER


cdef inline void events_insert(Events* events, int number, int64_t time) noexcept nogil:
    """Puts an event back that was taken out.

    Nothing that is stored here is read here: that would stall on store forwarding.
    """
    cdef int group = number >> GROUP_BITS
    cdef int64_t key = event_key(time, events.end_ps, events.bits, number)
    cdef int64_t first_of_group = min_i64(key, min_key(events.keys + (group << GROUP_BITS), 1 << GROUP_BITS))
    events.first = min_i64(first_of_group, min_key(events.firsts, events.groups))
    events.firsts[group] = first_of_group
    events.keys[number] = key


cdef inline void events_set(Events* events, int number, int64_t time) noexcept nogil:
    """Changes when an event is."""
    events_remove(events, number)
    events_insert(events, number, time)


cdef int events_init(Arena* arena, Events* events, int n) except -1
