"""The larger and the smaller of two times or counts."""
from libc.stdint cimport int64_t


cdef inline int64_t max_i64(int64_t a, int64_t b) noexcept nogil:
    return a if a > b else b


cdef inline int64_t min_i64(int64_t a, int64_t b) noexcept nogil:
    return a if a < b else b
