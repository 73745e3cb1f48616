"""Coalescing of a warp's lanes to line records."""
import numpy as np

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

cdef enum:
    LANES = 32
    MAX_LINES = 32     # a lane touches only one line

cdef inline uint32_t sectors_touched(uint64_t low, uint64_t high) noexcept nogil:
    return ((<uint32_t>low != 0) | (low >> 32 != 0) << 1 | (<uint32_t>high != 0) << 2 | (high >> 32 != 0) << 3)

cdef inline uint32_t sectors_whole(uint64_t low, uint64_t high) noexcept nogil:
    return ((<uint32_t>low == 0xFFFFFFFFu) | (low >> 32 == 0xFFFFFFFFu) << 1
            | (<uint32_t>high == 0xFFFFFFFFu) << 2 | (high >> 32 == 0xFFFFFFFFu) << 3)


@cython.boundscheck(False)
@cython.wraparound(False)
def coalesce(const int64_t[:, ::1] addresses, const uint8_t[::1] bytes_per_lane, const uint8_t[::1] stores):
    """Return the lines of warp instructions, in order of their first lane. Reference model: `ref_coalesce`.

    Parameters
    ----------
    addresses : int64 (instructions, 32), of each lane's first byte, negative where the lane is off
    bytes_per_lane : uint8 (steps,), 1 to 16, a power of 2; addresses are multiples of it. Instruction i is step i modulo
        the number of steps
    stores : uint8 (steps,), 1 for stores

    Returns
    -------
    number of lines, uint8 (instructions,); line records one after the other, uint64
    """
    cdef Py_ssize_t n = addresses.shape[0], steps = bytes_per_lane.shape[0], i, step = 0, total = 0
    cdef int lane, n_lines, here, size
    cdef int64_t address
    cdef uint64_t number, bits
    cdef int shift
    cdef uint64_t[MAX_LINES] numbers, low, high
    if addresses.shape[1] != LANES:
        raise ValueError(f"{addresses.shape[1]} lanes: expected {LANES}")
    if stores.shape[0] != steps or (n and not steps):
        raise ValueError(f"{steps} and {stores.shape[0]} steps: expected as many")
    counts = np.zeros(n, np.uint8)
    lines = np.empty(n * LANES, np.uint64)
    cdef uint8_t[::1] count = counts
    cdef uint64_t[::1] line = lines
    with nogil:
        for i in range(n):
            n_lines = here = 0
            size = bytes_per_lane[step]
            for lane in range(LANES):
                address = addresses[i, lane]
                if address < 0:
                    continue
                number = <uint64_t>address >> 7
                if n_lines == 0 or numbers[here] != number:
                    here = n_lines - 1
                    while here >= 0 and numbers[here] != number:
                        here -= 1
                    if here < 0:
                        here = n_lines
                        numbers[here], low[here], high[here] = number, 0, 0
                        n_lines += 1
                shift = address & 63
                bits = ((<uint64_t>1 << size) - 1) << shift
                if address & 64:
                    high[here] |= bits
                else:
                    low[here] |= bits
            count[i] = n_lines
            for here in range(n_lines):
                line[total + here] = (numbers[here] << 8 | (sectors_whole(low[here], high[here]) << 4 if stores[step] else 0)
                                      | sectors_touched(low[here], high[here]))
            total += n_lines
            step = step + 1 if step + 1 < steps else 0
    return counts, lines[:total]
