"""Memory of an `EventTree`."""
from libc.stdint cimport int64_t
from libc.stdlib cimport free

from buddysim.replay.hostmem cimport host_zeroed


cdef int tree_init(EventTree* tree, int leaves) except -1:
    """A tree of at least `leaves` leaves, none of which has an event."""
    cdef int node
    tree.size, tree.bits = 2, 1
    while tree.size < leaves:
        tree.size *= 2
        tree.bits += 1
    tree.keys = <int64_t*>host_zeroed(2 * tree.size * sizeof(int64_t))
    if not tree.keys:
        raise MemoryError(f"an event tree of {leaves} schedulers does not fit in memory")
    for node in range(2 * tree.size):
        tree.keys[node] = NEVER
    return 0


cdef void tree_free(EventTree* tree) noexcept:
    free(tree.keys)
