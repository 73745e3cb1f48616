"""Memory of an `EventTree`."""
from libc.stdlib cimport free, malloc

from buddysim.replay.setops cimport SCHED_NEVER


cdef int tree_init(EventTree* tree, int leaves) except -1:
    """A tree of at least `leaves` leaves, none of which has an event."""
    cdef int node
    tree.size = 2
    while tree.size < leaves:
        tree.size *= 2
    tree.keys = <double*>malloc(2 * tree.size * sizeof(double))
    tree.winners = <int*>malloc(2 * tree.size * sizeof(int))
    if not (tree.keys and tree.winners):
        raise MemoryError(f"an event tree of {leaves} schedulers does not fit in memory")
    for node in range(2 * tree.size):
        tree.keys[node] = SCHED_NEVER
        tree.winners[node] = node - tree.size if node >= tree.size else 0
    return 0


cdef void tree_free(EventTree* tree) noexcept:
    free(tree.keys)
    free(tree.winners)
