"""Two versions of the hot path, for newer CPUs and for all (`versions.h`)."""
from libc.stdint cimport int64_t

cdef extern from "versions.h" nogil:
    ctypedef int64_t int64_on_newer "NEWER_CPU int64_t"     # result type of a function that only newer CPUs run
    bint cpu_is_newer() noexcept
