"""Addresses of the lanes of a product's thread blocks. Reference model: `ref_lane_addresses`."""
cimport cython
from libc.stdint cimport int64_t

cdef enum:
    LANES = 32
    OFFSET = 0     # columns of an axis's parts
    ROW = 1
    COLUMN = 2

cdef int64_t OFF = -1


@cython.boundscheck(False)
@cython.wraparound(False)
def fill_addresses(
    int64_t[:, :, :] out,
    int64_t address,
    const int64_t[:, ::1] first,
    const int64_t[:, ::1] second,
    const int64_t[::1] window,
    const int64_t[:, ::1] threads,
    const int64_t[:, ::1] blocks,
    int64_t advance,
):
    """Write the addresses of each thread's elements; `OFF` where one is outside of its block's part or the window.

    Parameters
    ----------
    out : int64 (blocks x warps, iterations, 32)
    address : of the element at 0, 0, bytes
    first, second : int64 (extent, 3): each index's offset in bytes, row and column
    window : rows, columns, strides of both in elements, and bytes from one row and column to the next; or empty
    threads : int64 (2, threads): each thread's indices along both axes, from its block's first ones
    blocks : int64 (4, blocks): first indices along both axes, and the indices at which both parts end
    advance : by which the second index rises from one iteration to the next
    """
    cdef Py_ssize_t n_threads = threads.shape[1], block, warp, iteration, lane, thread, at, k
    cdef bint has_window = window.shape[0] > 0
    cdef int64_t rows = 0, columns = 0, row_stride = 1, column_stride = 1, row_bytes = 0, column_bytes = 0
    cdef int64_t row, column, result, end_at, end_k
    if out.shape[2] != LANES or n_threads % LANES or out.shape[0] * LANES != blocks.shape[1] * n_threads:
        raise ValueError(f"{out.shape[0]} x {out.shape[2]} lanes: expected those of all threads")
    if advance < 0:
        raise ValueError(f"an advance of {advance}: expected 0 or more")
    for block in range(blocks.shape[1]):
        if blocks[0, block] < 0 or blocks[1, block] < 0:
            raise ValueError(f"block {block} begins before index 0")
        if blocks[2, block] > first.shape[0] or blocks[3, block] > second.shape[0]:
            raise ValueError(f"block {block} ends behind the last index")
    for thread in range(n_threads):
        if threads[0, thread] < 0 or threads[1, thread] < 0:
            raise ValueError(f"thread {thread} begins before its block")
    if has_window:
        rows, columns, row_stride, column_stride = window[0], window[1], window[2], window[3]
        row_bytes, column_bytes = window[4], window[5]
    with nogil:
        for block in range(blocks.shape[1]):
            end_at, end_k = blocks[2, block], blocks[3, block]
            for warp in range(n_threads // LANES):
                for iteration in range(out.shape[1]):
                    for lane in range(LANES):
                        thread = warp * LANES + lane
                        at = blocks[0, block] + threads[0, thread]
                        k = blocks[1, block] + threads[1, thread] + iteration * advance
                        result = OFF
                        if at < end_at and k < end_k:
                            result = address + first[at, OFFSET] + second[k, OFFSET]
                            if has_window:
                                row, column = first[at, ROW] + second[k, ROW], first[at, COLUMN] + second[k, COLUMN]
                                if row_stride > 1:
                                    row = row // row_stride if row >= 0 and row % row_stride == 0 else -1
                                if column_stride > 1:
                                    column = column // column_stride if column >= 0 and column % column_stride == 0 else -1
                                if 0 <= row < rows and 0 <= column < columns:
                                    result += row * row_bytes + column * column_bytes
                                else:
                                    result = OFF
                        out[block * (n_threads // LANES) + warp, iteration, lane] = result
