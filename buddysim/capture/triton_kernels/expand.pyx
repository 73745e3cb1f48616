"""From the addresses of many warp instructions to their lines, sector masks and conflict codes."""
import numpy as np

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from buddysim.trace.coalesce cimport MAX_LANES, MAX_OP_LINES, atomic_conflicts, bank_words, coalesce_op
from buddysim.trace.records cimport OP_ATOMIC, OP_STORE


def expand(const uint64_t[:, ::1] addresses, const uint32_t[::1] active, const uint8_t[::1] kinds,
           const uint8_t[::1] widths):
    """Coalesce instructions with an active lane, in order.

    Parameters
    ----------
    addresses : of the 32 lanes of each instruction
    active : bit per lane; 0: the instruction is left out
    kinds : of each instruction, as in the trace: load, store or atomic
    widths : bytes of each lane

    Returns
    -------
    line words, and for each instruction that isn't left out its number of lines and its code of conflicts
    """
    cdef Py_ssize_t n = addresses.shape[0], i, n_lines = 0, n_ops = 0, capacity
    cdef uint64_t lanes[MAX_LANES]
    cdef uint64_t[::1] lines
    cdef int lane, count, its_lines
    if addresses.shape[1] != MAX_LANES or active.shape[0] != n or kinds.shape[0] != n or widths.shape[0] != n:
        raise ValueError(f"{n} instructions of {addresses.shape[1]} lanes, {active.shape[0]} masks")
    counts_array, codes_array = np.empty(n, np.uint8), np.empty(n, np.uint8)
    cdef uint8_t[::1] counts = counts_array
    cdef uint8_t[::1] codes = codes_array
    capacity = 16 * n + MAX_OP_LINES
    result = np.empty(capacity, np.uint64)
    lines = result
    for i in range(n):
        if not active[i]:
            continue
        if n_lines + MAX_OP_LINES > capacity:
            capacity *= 2
            lines = None
            result = np.resize(result, capacity)
            lines = result
        count = 0
        for lane in range(MAX_LANES):
            if active[i] >> lane & 1:
                lanes[count] = addresses[i, lane]
                count += 1
        its_lines = coalesce_op(lanes, count, widths[i], kinds[i] == OP_STORE, &lines[n_lines])
        if kinds[i] == OP_ATOMIC:
            codes[n_ops] = <uint8_t>(min(31, atomic_conflicts(lanes, count, widths[i])))
        else:
            codes[n_ops] = bank_words(lanes, count, widths[i], &lines[n_lines], its_lines)
        counts[n_ops] = <uint8_t>its_lines
        n_lines += its_lines
        n_ops += 1
    return result[:n_lines], counts_array[:n_ops], codes_array[:n_ops]
