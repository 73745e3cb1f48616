"""Hints to the CPU and the compiler: what will be read soon, and what seldom happens."""

cdef extern from *:
    void prefetch "__builtin_prefetch"(const void* address) noexcept nogil
    bint likely(bint condition) noexcept nogil      # Cython's own macros: what is off the straight path
    bint unlikely(bint condition) noexcept nogil
