"""A growing C array of fixed-size rows, for an unknown number of records."""
from libc.stdint cimport uint8_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memmove

import numpy as np

cdef enum:
    MIN_CAPACITY = 64     # rows


cdef class Rows:
    def __cinit__(self, size_t row_bytes):
        self.row_bytes = row_bytes
        self.data = NULL
        self.n = self.capacity = 0

    def __dealloc__(self):
        free(self.data)

    cdef void* append(self, size_t count) noexcept nogil:
        """Return space for `count` more rows, valid until the next call; NULL without memory."""
        cdef size_t capacity
        cdef char* data
        if self.n + count > self.capacity:
            capacity = max(2 * self.capacity, self.n + count, <size_t>MIN_CAPACITY)
            data = <char*>realloc(self.data, capacity * self.row_bytes)
            if data == NULL:
                return NULL
            self.data, self.capacity = data, capacity
        self.n += count
        return self.data + (self.n - count) * self.row_bytes

    cdef void* add(self, size_t count=1) except NULL:
        """Do the same as `append`, with a MemoryError instead of NULL."""
        cdef void* rows = self.append(count)
        if rows == NULL:
            raise MemoryError("no memory for a kernel's operations")
        return rows

    cdef object cut(self, size_t count, object dtype):
        """Return the first `count` rows as a numpy array; the others move to the front."""
        cdef uint8_t[::1] view
        array = np.empty(count * self.row_bytes, dtype=np.uint8)
        if count:
            view = array
            memcpy(&view[0], self.data, count * self.row_bytes)
            memmove(self.data, self.data + count * self.row_bytes, (self.n - count) * self.row_bytes)
            self.n -= count
        return array.view(dtype)
