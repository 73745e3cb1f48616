"""Binarize: a bit per ReLU output, and for each window of the max pool behind it 4 bits (Gist, Section IV-A).

The bit is ``not (y <= 0)``: the gradient of a NaN passes. Bits and positions fill their bytes from the lowest bit on;
the last byte is padded with zeros. A position counts the elements of a window row by row. Reference model:
`ref_binarize`.
"""
from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint8_t, uint32_t

import numpy as np

from buddysim.base.errors import BuddysimError
from buddysim.gist.windows import mask_bytes, positions_bytes

REFERENCE = "tests.reference.gist.ref_binarize"

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
    """Return a bit for each element of a ReLU's output: whether its gradient passes.

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
    """Return whether a value is positive, or NaN of either sign."""
    return (bits - 1 < 0x7FFFFFFF) | (bits > 0xFF800000u)


def backward(const uint8_t[::1] mask not None, gradient not None):
    """Return the gradient of a ReLU's input: the output's gradient where the bit is set, else 0.

    Parameters
    ----------
    mask : result of `encode`
    gradient : C-contiguous array of float32
    """
    cdef const uint32_t[::1] dy = _singles(gradient).view(np.uint32)
    cdef int64_t i, count = dy.shape[0]
    if mask.shape[0] != mask_bytes(count):
        raise BuddysimError(f"mask of {mask.shape[0]} bytes: expected {mask_bytes(count)} for {count} elements")
    input_gradient = np.empty(gradient.shape, np.float32)
    cdef uint32_t[::1] dx = input_gradient.reshape(-1).view(np.uint32)
    with nogil:
        for i in range(count):
            dx[i] = dy[i] & (0 - <uint32_t>(mask[i >> 3] >> (i & 7) & 1))
    return input_gradient


def max_positions(values not None, windows not None):
    """Position of the largest element of each window: of equal elements the first, of NaNs the last.

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
    payload = np.zeros(positions_bytes(planes * windows.out_plane), np.uint8)
    cdef uint8_t[::1] out = payload
    cdef float[::1] maxima = np.empty(windows.out_width, np.float32)
    cdef uint8_t[::1] positions = np.empty(windows.out_width, np.uint8)
    if not planes * windows.out_plane:
        return payload
    with nogil:
        for plane in range(planes):
            for row in range(g.out_height):
                largest_of_row(&x[plane * g.height * g.width], &g, row, &maxima[0], &positions[0])
                for column in range(g.out_width):
                    out[at >> 1] |= <uint8_t>(positions[column] << 4 * (at & 1))
                    at += 1
    return payload


cdef void largest_of_row(const float* x, const Geometry* g, int64_t row, float* maxima, uint8_t* positions) noexcept nogil:
    """Compute the positions of a row of windows, element by element for all windows, without a branch on values."""
    cdef int64_t i, j, h, column, first, end, start = 0
    cdef const float* line
    cdef float value
    cdef bint better
    while start < g.kernel_h - 1 and row * g.stride_h - g.pad_h + start * g.dilation_h < 0:
        start += 1
    for column in range(g.out_width):
        maxima[column] = -INFINITY
        positions[column] = 0
    for j in range(g.kernel_w - 1, -1, -1):  # of windows of nothing but -inf, the first element that is inside
        columns_inside(g, j, &first, &end)
        for column in range(first, end):
            positions[column] = <uint8_t>(start * g.kernel_w + j)
    for i in range(start, g.kernel_h):
        h = row * g.stride_h - g.pad_h + i * g.dilation_h
        if h < 0 or h >= g.height:
            continue
        for j in range(g.kernel_w):
            columns_inside(g, j, &first, &end)
            line = x + h * g.width - g.pad_w + j * g.dilation_w
            for column in range(first, end):
                value = line[column * g.stride_w]
                better = (value > maxima[column]) | (value != value)
                maxima[column] = value if better else maxima[column]
                positions[column] = <uint8_t>(i * g.kernel_w + j) if better else positions[column]


cdef inline void columns_inside(const Geometry* g, int64_t j, int64_t* first, int64_t* end) noexcept nogil:
    """Return the windows of a row whose element in column `j` lies inside the plane."""
    cdef int64_t before = g.pad_w - j * g.dilation_w, last = g.width - 1 + before
    first[0] = (before + g.stride_w - 1) // g.stride_w if before > 0 else 0
    end[0] = min(last // g.stride_w + 1, g.out_width) if last >= 0 else 0


def positions_from_indices(const int64_t[::1] indices not None, windows not None):
    """Return positions in windows from indices in the plane, which PyTorch's max pooling returns.

    Raises
    ------
    BuddysimError
        where an index is outside its window
    """
    cdef Geometry g = geometry_of(windows)
    cdef int64_t planes = _planes(indices.shape[0], windows.out_plane), _plane, row, column, at = 0, i, j, h, w
    cdef int64_t wrong = -1
    payload = np.zeros(positions_bytes(indices.shape[0]), np.uint8)
    cdef uint8_t[::1] out = payload
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
                    if i < 0 or j < 0 or i >= g.kernel_h or j >= g.kernel_w or plane_index(&g, row, column, i, j) != indices[at]:
                        wrong = at
                    else:
                        out[at >> 1] |= <uint8_t>((i * g.kernel_w + j) << 4 * (at & 1))
                    at += 1
    if wrong >= 0:
        raise BuddysimError(f"index {indices[wrong]}: expected an element of window {wrong % windows.out_plane}")
    return payload


cdef inline int64_t plane_index(const Geometry* g, int64_t row, int64_t column, int64_t i, int64_t j) noexcept nogil:
    """Index in the plane of an element of a window."""
    cdef int64_t h = row * g.stride_h - g.pad_h + i * g.dilation_h
    return h * g.width + column * g.stride_w - g.pad_w + j * g.dilation_w


def indices_from_positions(const uint8_t[::1] payload not None, int64_t planes, windows not None):
    """Return indices in the plane, an int64 array; the inverse of `positions_from_indices`."""
    cdef Geometry g = geometry_of(windows)
    cdef int64_t _plane, row, column, at = 0, position
    _check_positions(payload.shape[0], planes, windows)
    indices = np.empty(planes * windows.out_plane, np.int64)
    cdef int64_t[::1] out = indices
    with nogil:
        for _plane in range(planes):
            for row in range(g.out_height):
                for column in range(g.out_width):
                    position = payload[at >> 1] >> 4 * (at & 1) & 15
                    out[at] = plane_index(&g, row, column, position // g.kernel_w, position % g.kernel_w)
                    at += 1
    return indices


def pool_backward(const uint8_t[::1] payload not None, gradient not None, windows not None):
    """Return the gradient of a max pool's input: a window's gradient belongs to its largest element.

    Parameters
    ----------
    payload : result of `max_positions`
    gradient : C-contiguous array of float32, a value per window

    Returns
    -------
    flat float32 array of whole input planes
    """
    cdef const float[::1] dy = _singles(gradient)
    cdef Geometry g = geometry_of(windows)
    cdef int64_t planes = _planes(dy.shape[0], windows.out_plane), plane, row, column, at = 0, position, size = windows.plane, to
    _check_positions(payload.shape[0], planes, windows)
    input_gradient = np.zeros(planes * size, np.float32)
    cdef float[::1] dx = input_gradient
    cdef int64_t wrong = -1
    with nogil:
        for plane in range(planes):
            for row in range(g.out_height):
                for column in range(g.out_width):
                    position = payload[at >> 1] >> 4 * (at & 1) & 15
                    to = plane_index(&g, row, column, position // g.kernel_w, position % g.kernel_w)
                    if 0 <= to < size:
                        dx[plane * size + to] += dy[at]
                    else:
                        wrong = at
                    at += 1
    if wrong >= 0:
        raise BuddysimError(f"position of window {wrong}: expected one inside the plane (corrupt)")
    return input_gradient


def _singles(values):
    """Return an array of float32, flat."""
    if not isinstance(values, np.ndarray) or values.dtype != np.float32 or not values.flags.c_contiguous:
        raise BuddysimError(f"values {getattr(values, 'dtype', type(values).__name__)}: expected contiguous float32")
    return values.reshape(-1)


def _planes(count, plane):
    """Number of planes of that size."""
    if not plane or count % plane:
        raise BuddysimError(f"{count} elements: expected whole planes of {plane}")
    return count // plane


def _check_positions(length, planes, windows):
    expected = positions_bytes(planes * windows.out_plane)
    if length != expected:
        raise BuddysimError(f"positions of {length} bytes: expected {expected} for {planes} planes")
