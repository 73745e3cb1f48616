"""Set-up of an order of events."""
from buddysim.replay.primitives.arena cimport arena_zeroed


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
