"""Growth of a pool."""
from libc.stdlib cimport free, realloc


cdef int pool_grow(Pool* pool) noexcept nogil:
    """Doubles the capacity; 0 if there is no memory."""
    cdef int capacity = 2 * pool.capacity if pool.capacity else 1024
    cdef char* grown = <char*>realloc(pool.items, <size_t>capacity * pool.size)
    if not grown:
        return 0
    pool.items, pool.capacity = grown, capacity
    return 1


cdef void pool_init(Pool* pool, size_t size) noexcept:
    """Creates an empty pool of items of `size` bytes, at least four."""
    pool[0] = Pool(NULL, size, 0, 0, -1)


cdef void pool_free(Pool* pool) noexcept:
    """Frees the items."""
    free(pool.items)
    pool.items = NULL
