"""The host's memory that a run's state lies in."""

cdef extern from "hostmem.h" nogil:
    const size_t HOST_LINE
    const size_t HOST_HUGE
    size_t host_whole(size_t bytes, size_t unit) noexcept
    void* host_block(size_t bytes) noexcept

cdef struct HostBlock:          # its arrays follow, from the next line of the host's cache on
    HostBlock* before
    size_t used                 # bytes, this head's among them
    size_t bytes

cdef struct HostArena:
    HostBlock* newest


cdef void* arena_zeroed(HostArena* arena, size_t count, size_t size) except NULL
cdef void arena_free(HostArena* arena) noexcept
