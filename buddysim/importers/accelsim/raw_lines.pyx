"""Finds the instruction lines of raw traces, whose warps are interleaved."""
from libc.stdint cimport int64_t, uint64_t

import numpy as np

from buddysim.base.errors import BuddysimError
from buddysim.importers.accelsim.text cimport Cursor, next_token, parse_decimal
from buddysim.importers.rows cimport Rows


def index_lines(path, text, header, int64_t first_line):
    """Find the instruction lines of a raw trace's text, which isn't empty.

    Returns
    -------
    offsets : where each line starts
    keys : block number times warps per block plus warp
    numbers : line numbers
    """
    cdef const unsigned char[::1] view = text
    cdef Py_ssize_t n = view.shape[0], start
    cdef Cursor line, token
    cdef const unsigned char* end
    cdef int64_t number = first_line, value
    cdef int64_t[4] position
    cdef uint64_t[3] grid
    cdef uint64_t block_warps = header.block_warps
    cdef Rows offsets = Rows(8), keys = Rows(8), numbers = Rows(8)
    cdef int i
    grid[0], grid[1], grid[2] = header.grid
    end = &view[0] + n
    line.at = &view[0]
    while line.at < end:
        line.end = line.at
        while line.end < end and line.end[0] != 10:
            line.end += 1
        number += 1
        start = line.at - &view[0]
        if next_token(&line, &token) and token.at[0] != 35:
            for i in range(4):
                if i and not next_token(&line, &token):
                    token.end = token.at
                if not parse_decimal(token, &position[i]) or position[i] < 0 \
                        or position[i] >= <int64_t>(grid[i] if i < 3 else block_warps):
                    raise BuddysimError(
                        f"{path}: line {number}: expected the block's x y z inside the grid and the warp's number")
            (<int64_t*>offsets.add())[0] = start
            value = (position[2] * <int64_t>grid[1] + position[1]) * <int64_t>grid[0] + position[0]
            (<uint64_t*>keys.add())[0] = <uint64_t>value * block_warps + <uint64_t>position[3]
            (<int64_t*>numbers.add())[0] = number
        line.at = line.end + 1
    return offsets.cut(offsets.n, np.int64), keys.cut(keys.n, np.uint64), numbers.cut(numbers.n, np.int64)
