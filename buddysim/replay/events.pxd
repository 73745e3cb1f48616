"""The order of events: a winner tree over the schedulers, keyed by when each can issue next."""

cdef struct EventTree:
    int size            # leaves, a power of two
    double* keys        # [size]
    int* winners        # [2 * size]: winners[1] is the leaf with the smallest key, the lowest of equal ones


cdef inline void tree_update(EventTree* tree, int leaf, double key) noexcept nogil:
    """Changes a leaf's key."""
    cdef int node = (leaf + tree.size) >> 1
    cdef int left, right
    tree.keys[leaf] = key
    while node:
        left, right = tree.winners[2 * node], tree.winners[2 * node + 1]
        tree.winners[node] = left if tree.keys[left] <= tree.keys[right] else right
        node >>= 1


cdef int tree_init(EventTree* tree, int leaves) except -1
cdef void tree_free(EventTree* tree) noexcept
