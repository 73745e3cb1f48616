"""The order of events: a winner tree over the schedulers, keyed by when each can issue next.

A key is the time with the leaf's number in its low bits: the smallest key is the earliest event, the lowest leaf of equal ones,
and a level of the tree is one comparison without a branch, which no host could foresee.
"""
from libc.stdint cimport int64_t

from buddysim.replay.hostmem cimport HostArena

cdef enum:
    NEVER = 0x7FFFFFFFFFFFFFFF

cdef struct EventTree:
    int size            # leaves, a power of two; leaf i is node size + i
    int bits            # log2 of size
    int64_t* keys       # [2 * size]: time << bits | leaf, or NEVER; keys[1] is the smallest


cdef inline int64_t smaller(int64_t a, int64_t b) noexcept nogil:
    return a if a < b else b


cdef inline void tree_update(EventTree* tree, int leaf, int64_t time) noexcept nogil:
    """Changes when a leaf has its next event."""
    cdef int64_t* keys = tree.keys
    cdef int64_t key = time << tree.bits | leaf if time != NEVER else time
    cdef unsigned int node = leaf + tree.size
    keys[node] = key
    while node > 1:
        key = smaller(key, keys[node ^ 1])
        node >>= 1
        keys[node] = key


cdef int tree_init(HostArena* arena, EventTree* tree, int leaves) except -1
