"""Memory of an `EventTree`."""
from libc.stdint cimport int64_t

from buddysim.replay.hostmem cimport HostArena, arena_zeroed


cdef int tree_init(HostArena* arena, EventTree* tree, int leaves) except -1:
    """A tree of at least `leaves` leaves, none of which has an event."""
    cdef int node
    tree.size, tree.bits = 2, 1
    while tree.size < leaves:
        tree.size *= 2
        tree.bits += 1
    tree.keys = <int64_t*>arena_zeroed(arena, 2 * tree.size, sizeof(int64_t))
    for node in range(2 * tree.size):
        tree.keys[node] = NEVER
    return 0
