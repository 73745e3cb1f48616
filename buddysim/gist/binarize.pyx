"""Binarize: a bit per ReLU output, and for each window of the max pool behind it 4 bits (Gist, Section IV-A).

The bit is ``not (y <= 0)``: NaN lets gradients through. Bits and places lie in their bytes from the lowest bit on; the
last byte is padded with zeros. A place counts the elements of a window row by row. `ref_binarize` is the twin.
"""
from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint8_t, uint32_t

import numpy as np

from buddysim.base.errors import BuddysimError
from buddysim.gist.windows import mask_bytes, positions_bytes

TWIN = "tests.reference.gist.ref_binarize"

cdef struct Geometry:
    int64_t height, width, out_height, out_width
    int64_t kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w


cdef Geometry geometry_of(windows):
    cdef Geometry g
    g.height, g.width, g.out_height, g.out_width = windows.height, windows.width, windows.out_height, windows.out_width
    g.kernel_h, g.kernel_w = windows.kernel
    g.stride_h, g.stride_w = windows.stride
    g.pad_h, g.pad_w = windows.pad
    g.dilation_h, g.dilation_w = windows.dilation
    return g


def encode(values not None):
    """A bit for each element of a ReLU's output: whether its gradient passes.

    Parameters
    ----------
    values : C-contiguous array of float32 of any shape

    Returns
    -------
    uint8 array, eight elements a byte
    """
    cdef const uint32_t[::1] bits = _singles(values).view(np.uint32)
    cdef int64_t i, count = bits.shape[0]
    cdef uint32_t byte
    cdef int j
    mask = np.empty(mask_bytes(count), np.uint8)
    cdef uint8_t[::1] out = mask
    with nogil:
        for i in range(count // 8):
            byte = 0
            for j in range(8):
                byte |= passes(bits[8 * i + j]) << j
            out[i] = <uint8_t>byte
        if count % 8:
            byte = 0
            for j in range(count % 8):
                byte |= passes(bits[count - count % 8 + j]) << j
            out[count // 8] = <uint8_t>byte
    return mask


cdef inline uint32_t passes(uint32_t bits) noexcept nogil:
    """Whether a value isn't 0 or less: it is positive, or NaN of either sign."""
    return (bits - 1 < 0x7FFFFFFF) | (bits > 0xFF800000u)


def backward(const uint8_t[::1] mask not None, gradient not None):
    """The gradient of a ReLU's input: that of its output where the bit is set, else 0.

    Parameters
    ----------
    mask : what `encode` gave
    gradient : C-contiguous array of float32
    """
    cdef const uint32_t[::1] dy = _singles(gradient).view(np.uint32)
    cdef int64_t i, count = dy.shape[0]
    if mask.shape[0] != mask_bytes(count):
        raise BuddysimError(f"mask of {mask.shape[0]} bytes: expected {mask_bytes(count)} for {count} elements")
    found = np.empty(gradient.shape, np.float32)
    cdef uint32_t[::1] dx = found.reshape(-1).view(np.uint32)
    with nogil:
        for i in range(count):
            dx[i] = dy[i] & (0 - <uint32_t>(mask[i >> 3] >> (i & 7) & 1))
    return found


def places(values not None, windows not None):
    """The place of the largest element of each window; of equal ones the first, of NaNs the last.

    Parameters
    ----------
    values : C-contiguous array of float32, whole planes one after the other
    windows : `Windows`

    Returns
    -------
    uint8 array, two windows a byte
    """
    cdef const float[::1] x = _singles(values)
    cdef Geometry g = geometry_of(windows)
    cdef int64_t planes = _planes(x.shape[0], windows.plane), plane, row, column, at = 0
    code = np.zeros(positions_bytes(planes * windows.out_plane), np.uint8)
    cdef uint8_t[::1] out = code
    cdef float[::1] most = np.empty(windows.out_width, np.float32)
    cdef uint8_t[::1] found = np.empty(windows.out_width, np.uint8)
    if not planes * windows.out_plane:
        return code
    with nogil:
        for plane in range(planes):
            for row in range(g.out_height):
                largest_of_row(&x[plane * g.height * g.width], &g, row, &most[0], &found[0])
                for column in range(g.out_width):
                    out[at >> 1] |= <uint8_t>(found[column] << 4 * (at & 1))
                    at += 1
    return code


cdef void largest_of_row(const float* x, const Geometry* g, int64_t row, float* most, uint8_t* found) noexcept nogil:
    """Places of a row of windows: element by element of the window, for all windows, without a branch on the values."""
    cdef int64_t i, j, h, column, first, end, start = 0
    cdef const float* line
    cdef float value
    cdef bint better
    while start < g.kernel_h - 1 and row * g.stride_h - g.pad_h + start * g.dilation_h < 0:
        start += 1
    for column in range(g.out_width):
        most[column] = -INFINITY
        found[column] = 0
    for j in range(g.kernel_w - 1, -1, -1):  # of windows of nothing but -inf, the first element that is inside
        columns_inside(g, j, &first, &end)
        for column in range(first, end):
            found[column] = <uint8_t>(start * g.kernel_w + j)
    for i in range(start, g.kernel_h):
        h = row * g.stride_h - g.pad_h + i * g.dilation_h
        if h < 0 or h >= g.height:
            continue
        for j in range(g.kernel_w):
            columns_inside(g, j, &first, &end)
            line = x + h * g.width - g.pad_w + j * g.dilation_w
            for column in range(first, end):
                value = line[column * g.stride_w]
                better = (value > most[column]) | (value != value)
                most[column] = value if better else most[column]
                found[column] = <uint8_t>(i * g.kernel_w + j) if better else found[column]


cdef inline void columns_inside(const Geometry* g, int64_t j, int64_t* first, int64_t* end) noexcept nogil:
    """The windows of a row whose element in column `j` lies inside the plane."""
    cdef int64_t before = g.pad_w - j * g.dilation_w, last = g.width - 1 + before
    first[0] = (before + g.stride_w - 1) // g.stride_w if before > 0 else 0
    end[0] = min(last // g.stride_w + 1, g.out_width) if last >= 0 else 0


def from_indices(const int64_t[::1] indices not None, windows not None):
    """Places from positions in the plane, as PyTorch's max pooling has them.

    Raises
    ------
    BuddysimError
        where a position isn't one of its window
    """
    cdef Geometry g = geometry_of(windows)
    cdef int64_t planes = _planes(indices.shape[0], windows.out_plane), _plane, row, column, at = 0, i, j, h, w
    cdef int64_t wrong = -1
    code = np.zeros(positions_bytes(indices.shape[0]), np.uint8)
    cdef uint8_t[::1] out = code
    with nogil:
        for _plane in range(planes):
            for row in range(g.out_height):
                for column in range(g.out_width):
                    h = indices[at] // g.width
                    w = indices[at] - h * g.width
                    i = h - (row * g.stride_h - g.pad_h)
                    j = w - (column * g.stride_w - g.pad_w)
                    if g.dilation_h != 1:
                        i = i // g.dilation_h
                    if g.dilation_w != 1:
                        j = j // g.dilation_w
                    if i < 0 or j < 0 or i >= g.kernel_h or j >= g.kernel_w or position(&g, row, column, i, j) != indices[at]:
                        wrong = at
                    else:
                        out[at >> 1] |= <uint8_t>((i * g.kernel_w + j) << 4 * (at & 1))
                    at += 1
    if wrong >= 0:
        raise BuddysimError(f"index {indices[wrong]}: expected a position in window {wrong % windows.out_plane}")
    return code


cdef inline int64_t position(const Geometry* g, int64_t row, int64_t column, int64_t i, int64_t j) noexcept nogil:
    """Where an element of a window lies in the plane."""
    cdef int64_t h = row * g.stride_h - g.pad_h + i * g.dilation_h
    return h * g.width + column * g.stride_w - g.pad_w + j * g.dilation_w


def to_indices(const uint8_t[::1] code not None, int64_t planes, windows not None):
    """Positions in the plane, as an int64 array; undoes `from_indices`."""
    cdef Geometry g = geometry_of(windows)
    cdef int64_t _plane, row, column, at = 0, place
    _check_places(code.shape[0], planes, windows)
    indices = np.empty(planes * windows.out_plane, np.int64)
    cdef int64_t[::1] out = indices
    with nogil:
        for _plane in range(planes):
            for row in range(g.out_height):
                for column in range(g.out_width):
                    place = code[at >> 1] >> 4 * (at & 1) & 15
                    out[at] = position(&g, row, column, place // g.kernel_w, place % g.kernel_w)
                    at += 1
    return indices


def pool_backward(const uint8_t[::1] code not None, gradient not None, windows not None):
    """The gradient of a max pool's input: each window's goes to the place of its largest element.

    Parameters
    ----------
    code : what `places` gave
    gradient : C-contiguous array of float32, a value per window

    Returns
    -------
    flat float32 array of whole input planes
    """
    cdef const float[::1] dy = _singles(gradient)
    cdef Geometry g = geometry_of(windows)
    cdef int64_t planes = _planes(dy.shape[0], windows.out_plane), plane, row, column, at = 0, place, size = windows.plane, to
    _check_places(code.shape[0], planes, windows)
    found = np.zeros(planes * size, np.float32)
    cdef float[::1] dx = found
    cdef int64_t wrong = -1
    with nogil:
        for plane in range(planes):
            for row in range(g.out_height):
                for column in range(g.out_width):
                    place = code[at >> 1] >> 4 * (at & 1) & 15
                    to = position(&g, row, column, place // g.kernel_w, place % g.kernel_w)
                    if 0 <= to < size:
                        dx[plane * size + to] += dy[at]
                    else:
                        wrong = at
                    at += 1
    if wrong >= 0:
        raise BuddysimError(f"place of window {wrong}: expected one inside the plane (corrupt)")
    return found


def _singles(values):
    """An array of float32, flat."""
    if not isinstance(values, np.ndarray) or values.dtype != np.float32 or not values.flags.c_contiguous:
        raise BuddysimError(f"values {getattr(values, 'dtype', type(values).__name__)}: expected contiguous float32")
    return values.reshape(-1)


def _planes(count, plane):
    """How many planes of that size there are."""
    if not plane or count % plane:
        raise BuddysimError(f"{count} elements: expected whole planes of {plane}")
    return count // plane


def _check_places(length, planes, windows):
    expected = positions_bytes(planes * windows.out_plane)
    if length != expected:
        raise BuddysimError(f"places of {length} bytes: expected {expected} for {planes} planes")
