"""Which pieces of large allocations a chunk touches for the first time."""
from libc.stdint cimport int64_t, uint8_t, uint64_t

import numpy as np


def first_touched(const uint64_t[::1] lines not None, const uint64_t[::1] firsts not None, const uint64_t[::1] ends not None,
                  const int64_t[::1] pieces not None, uint8_t[::1] touched not None, int bits):
    """The pieces in which lines lie and that weren't touched before; they are touched from now on.

    The plain way: for each line the range that has it, `pieces` of the range + (line >> `bits`), once each.

    Parameters
    ----------
    lines : words of a chunk, the line's number (address / 128) << 8
    firsts, ends : numbers of the first line of each range, and of the one behind its last; rising, multiples of a piece
    pieces : of each range: what makes the number of a piece of its lines' numbers >> `bits`
    touched : 1 for each piece that has been touched

    Returns
    -------
    int64 (pieces,), rising
    """
    cdef list found = []
    cdef uint64_t first = 1, end = 0, line       # the piece, or gap between ranges, of the last line
    cdef int64_t i, low, high, middle, piece
    for i in range(lines.shape[0]):
        line = lines[i] >> 8
        if first <= line < end:
            continue
        low, high = 0, firsts.shape[0]
        while low < high:                       # the first range behind the line
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
        piece = pieces[low - 1] + <int64_t>(line >> bits)
        if not touched[piece]:
            touched[piece] = 1
            found.append(piece)
    found.sort()
    return np.array(found, dtype=np.int64)
