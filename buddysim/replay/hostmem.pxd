"""Zeroed host memory, in huge pages where it is large (`hostmem.h`); freed by `free`."""

cdef extern from "hostmem.h" nogil:
    void* host_zeroed(size_t bytes) noexcept
