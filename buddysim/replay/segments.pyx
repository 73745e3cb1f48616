"""Segments of lazy allocations that a chunk accesses first."""
from libc.stdint cimport int64_t, uint8_t, uint64_t

import numpy as np


def first_accessed(const uint64_t[::1] lines not None, const uint64_t[::1] firsts not None, const uint64_t[::1] ends not None,
                   const int64_t[::1] segments not None, uint8_t[::1] accessed not None, int bits):
    """Returns the segments that lines lie in and that have not been accessed before, and marks them as accessed.

    A segment's number is `segments` of the range that contains the line + (line >> `bits`).

    Parameters
    ----------
    lines : words of a chunk, the line's number (address / 128) << 8
    firsts, ends : numbers of the first line of each range, and of the one behind its last; ascending, multiples of a segment
    segments : [ranges]: added to a line's number >> `bits`, gives the number of its segment
    accessed : 1 for each segment that has been accessed

    Returns
    -------
    int64 (segments,), ascending
    """
    cdef list new_segments = []
    cdef uint64_t first = 1, end = 0, line       # the segment of the last line, or the space between ranges
    cdef int64_t i, low, high, middle, segment
    for i in range(lines.shape[0]):
        line = lines[i] >> 8
        if first <= line < end:
            continue
        low, high = 0, firsts.shape[0]
        while low < high:                       # the first range after the line
            middle = (low + high) // 2
            if firsts[middle] <= line:
                low = middle + 1
            else:
                high = middle
        if not low or line >= ends[low - 1]:
            first = ends[low - 1] if low else 0
            end = firsts[low] if low < firsts.shape[0] else <uint64_t>1 << 56
            continue
        first = line >> bits << bits
        end = first + (<uint64_t>1 << bits)
        segment = segments[low - 1] + <int64_t>(line >> bits)
        if not accessed[segment]:
            accessed[segment] = 1
            new_segments.append(segment)
    new_segments.sort()
    return np.array(new_segments, dtype=np.int64)
