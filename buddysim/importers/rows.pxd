"""A growing C array of fixed-size rows, for an unknown number of records."""

cdef class Rows:
    cdef char* data
    cdef size_t row_bytes
    cdef size_t n
    cdef size_t capacity

    cdef void* append(self, size_t count) noexcept nogil
    cdef void* add(self, size_t count=*) except NULL
    cdef object cut(self, size_t count, object dtype)
