"""Arrays that live as long as a run, in huge pages."""
from libc.string cimport memset

cdef size_t MAX_BYTES = <size_t>1 << 60


cdef void* arena_zeroed(Arena* arena, size_t count, size_t size) except NULL:
    """Allocates `count` zeroed elements of `size` bytes, aligned to the CPU's cache lines. Raises MemoryError."""
    cdef ArenaBlock* block = arena.newest
    cdef size_t bytes, block_bytes
    cdef char* array
    if count > MAX_BYTES // size:
        raise MemoryError(f"{count} times {size} bytes do not fit in memory")
    bytes = arena_round_up(count * size, CPU_LINE)
    if not block or bytes > block.bytes - block.used:
        block_bytes = arena_round_up(CPU_LINE + bytes, HUGE_PAGE)
        block = <ArenaBlock*>arena_block(block_bytes - 1)
        if not block:
            raise MemoryError(f"{count} times {size} bytes do not fit in memory")
        block.before, block.used, block.bytes = arena.newest, CPU_LINE, block_bytes
        arena.newest = block
    array = <char*>block + block.used
    block.used += bytes
    memset(array, 0, bytes)
    return array


cdef void arena_free(Arena* arena) noexcept:
    """Frees all arrays of an arena."""
    cdef ArenaBlock* block = arena.newest
    cdef ArenaBlock* before
    while block:
        before = block.before
        arena_block_free(block)
        block = before
    arena.newest = NULL
