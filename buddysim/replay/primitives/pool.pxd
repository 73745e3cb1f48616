"""A pool of items of one size, which are known by their numbers; it grows, and then its items move."""

# The first four bytes of an unused item are the number of the next unused one.
cdef struct Pool:
    char* items   # [capacity]
    size_t size   # bytes of an item
    int n         # items that have ever been used
    int capacity
    int unused    # first of the unused ones among these; -1: none


cdef int pool_grow(Pool* pool) noexcept nogil
cdef void pool_init(Pool* pool, size_t size) noexcept
cdef void pool_free(Pool* pool) noexcept


cdef inline void* pool_item(const Pool* pool, int number) noexcept nogil:
    """An item, until the next `pool_take`."""
    return pool.items + <size_t>number * pool.size


cdef inline int pool_take(Pool* pool) noexcept nogil:
    """The number of an unused item, whose contents are undefined; -1 if there is no memory for more."""
    cdef int number = pool.unused
    if number >= 0:
        pool.unused = (<int*>pool_item(pool, number))[0]
        return number
    if pool.n == pool.capacity and not pool_grow(pool):
        return -1
    pool.n += 1
    return pool.n - 1


cdef inline void pool_give(Pool* pool, int number) noexcept nogil:
    """Makes an item unused."""
    (<int*>pool_item(pool, number))[0] = pool.unused
    pool.unused = number
