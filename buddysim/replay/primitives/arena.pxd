"""Memory of a run's state."""

cdef extern from "arena.h" nogil:
    const size_t CPU_LINE
    const size_t HUGE_PAGE
    size_t arena_round_up(size_t bytes, size_t unit) noexcept
    void* arena_block(size_t bytes) noexcept
    void arena_block_free(void* block) noexcept

# Followed by its arrays, from the CPU's next cache line on.
cdef struct ArenaBlock:
    ArenaBlock* before
    size_t used  # bytes, including this head
    size_t bytes

cdef struct Arena:
    ArenaBlock* newest


cdef void* arena_zeroed(Arena* arena, size_t count, size_t size) except NULL
cdef void arena_free(Arena* arena) noexcept
