"""Entries of zeros alone, which need no compressor."""
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

import numpy as np


def zero_entries(const uint8_t[::1] data not None):
    """True per 128 B entry (``len(data) // 128`` of them) of which every byte is zero."""
    cdef int64_t i, entries = data.shape[0] // 128
    cdef uint64_t words[16]
    cdef int w
    zero = np.empty(entries, dtype=np.bool_)
    cdef uint8_t[::1] out = zero.view(np.uint8)
    with nogil:
        for i in range(entries):
            memcpy(words, &data[i * 128], 128)
            for w in range(16):
                if words[w]:
                    break
            else:
                w = 16
            out[i] = w == 16
    return zero
