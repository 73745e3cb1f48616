"""Hints to the CPU, about later reads, and to the compiler, about rare branches."""

cdef extern from *:
    void prefetch "__builtin_prefetch"(const void* address) noexcept nogil
    bint likely(bint condition) noexcept nogil      # macros of Cython
    bint unlikely(bint condition) noexcept nogil
