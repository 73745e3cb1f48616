"""Memory contents that a trace reveals."""
from libc.stdint cimport uint8_t, uint64_t

cdef enum:
    PAGE_BITS = 13

cdef class MemoryImage:
    cdef dict pages             # page number -> _Page
    cdef _Page last
    cdef readonly bint changed  # since it was last cleared

    cdef _Page page(self, uint64_t number)
    cdef int store(self, uint64_t address, const uint8_t* data, int n) except -1


cdef class _Page:
    cdef uint64_t number
    cdef bint changed
    cdef object data_array, known_array
    cdef uint8_t[::1] data
    cdef uint8_t[::1] known
