"""Lines of a chunk from trace addresses to the entry numbers of a run."""
from libc.stdint cimport int64_t, uint64_t


def translate_lines(uint64_t[::1] lines, const int64_t[:, ::1] table):
    """Replaces each line's address by its entry number, in place; the masks stay.

    Parameters
    ----------
    lines : uint64 (n,), (address >> 7) << 8 | masks
    table : int64 (allocations, 3), sorted: first line, end line, entry of the first line

    Returns
    -------
    index of the first line that is in no allocation, or -1
    """
    cdef int64_t i, line, low, high, middle, row = 0
    cdef int64_t n = lines.shape[0], rows = table.shape[0]
    if rows == 0:
        return 0 if n else -1
    with nogil:
        for i in range(n):
            line = <int64_t>(lines[i] >> 8)
            if line < table[row, 0] or line >= table[row, 1]:
                low, high = 0, rows
                while high - low > 1:
                    middle = (low + high) // 2
                    if table[middle, 0] <= line:
                        low = middle
                    else:
                        high = middle
                row = low
                if line < table[row, 0] or line >= table[row, 1]:
                    break
            lines[i] = <uint64_t>(line - table[row, 0] + table[row, 2]) << 8 | (lines[i] & 255)
        else:
            i = -1
    return i
