"""The order of events: a winner tree over the schedulers, keyed by when each can issue next."""

cdef struct EventTree:
    int size            # leaves, a power of two; leaf i is node size + i
    double* keys        # [2 * size]: keys[1] is the smallest
    int* winners        # [2 * size]: winners[1] is the leaf with the smallest key, the lowest of equal ones


cdef inline void tree_update(EventTree* tree, int leaf, double key) noexcept nogil:
    """Changes a leaf's key. Without branches on the keys, which no host could foresee."""
    cdef double* keys = tree.keys
    cdef int* winners = tree.winners
    cdef int node = leaf + tree.size
    cdef int other, take_other, winner = leaf
    cdef double other_key
    keys[node] = key
    while node > 1:
        other = node ^ 1
        other_key = keys[other]
        take_other = (other_key < key) | ((other_key == key) & (other < node))
        winner ^= (winner ^ winners[other]) & -take_other
        key = other_key if other_key < key else key
        node >>= 1
        keys[node] = key
        winners[node] = winner


cdef int tree_init(EventTree* tree, int leaves) except -1
cdef void tree_free(EventTree* tree) noexcept
