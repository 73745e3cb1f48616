"""Sparse storage, dense compute: a feature map as compressed sparse rows (CSR), both ways (Gist, Section IV-A).

A feature map is stored as a matrix with rows of 256 columns; the last row may be shorter. Stored are the nonzero words,
the column of each in one byte, and for each row, in 4 bytes, the number of stored words up to its end. With 4-byte
columns (cuSPARSE's) rows may be longer. -0.0 is not a zero word, so decoding restores every bit. Reference model:
`ref_ssdc`.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memset

import numpy as np

from buddysim.base.errors import BuddysimError
from buddysim.gist.csr_rows import CsrRows, check_columns

REFERENCE = "tests.reference.gist.ref_ssdc"

ctypedef fused index_t:
    uint8_t
    uint32_t


def encode(values not None, int64_t columns=256, int index_bytes=1):
    """Encode a feature map as sparse rows.

    Parameters
    ----------
    values : C-contiguous array of 4-byte elements, of any shape
    columns : of a row
    index_bytes : 1 (rows of at most 256 columns) or 4

    Returns
    -------
    `CsrRows`
    """
    check_columns(columns, index_bytes)
    if not isinstance(values, np.ndarray) or values.dtype.itemsize != 4 or not values.flags.c_contiguous:
        raise BuddysimError(f"values {getattr(values, 'dtype', type(values).__name__)}: expected contiguous 4-byte elements")
    cdef const uint32_t[::1] words = values.reshape(-1).view(np.uint32)
    cdef int64_t count = words.shape[0]
    if count >= 2**32:
        raise BuddysimError(f"feature map of {count} elements: expected fewer than {2**32}")
    rows = (count + columns - 1) // columns
    cdef int64_t nonzeros = count_nonzeros(words)
    # One element more than is stored: zeros are written there and overwritten.
    stored = np.empty(nonzeros + 1, np.uint32)
    indices = np.empty(nonzeros + 1, np.uint8 if index_bytes == 1 else np.uint32)
    ends = np.empty(rows, np.uint32)
    if index_bytes == 1:
        store_nonzeros[uint8_t](words, columns, stored, indices, ends)
    else:
        store_nonzeros[uint32_t](words, columns, stored, indices, ends)
    return CsrRows(count, columns, stored[:nonzeros].view(values.dtype), indices[:nonzeros], ends)


def decode(rows not None):
    """Decode a feature map into a flat array of its element type."""
    check_columns(rows.columns, rows.indices.dtype.itemsize)
    values = np.empty(rows.count, rows.values.dtype)
    cdef uint32_t[::1] out = values.view(np.uint32)
    cdef const uint32_t[::1] stored = np.ascontiguousarray(rows.values).view(np.uint32)
    cdef const uint32_t[::1] ends = rows.ends
    cdef int64_t wrong
    if len(rows.indices) != len(rows.values) or ends.shape[0] != (rows.count + rows.columns - 1) // rows.columns:
        raise BuddysimError(f"ssdc: {len(rows.values)} values, {len(rows.indices)} columns, {len(rows.ends)} rows: corrupt")
    if rows.indices.dtype.itemsize == 1:
        wrong = scatter_rows[uint8_t](stored, rows.indices, ends, rows.columns, out)
    else:
        wrong = scatter_rows[uint32_t](stored, rows.indices, ends, rows.columns, out)
    if wrong >= 0:
        raise BuddysimError(f"ssdc: row {wrong} is corrupt")
    return values


cdef int64_t count_nonzeros(const uint32_t[::1] words) noexcept:
    cdef int64_t i, nonzeros = 0
    with nogil:
        for i in range(words.shape[0]):
            nonzeros += words[i] != 0
    return nonzeros


cdef void store_nonzeros(
    const uint32_t[::1] words, int64_t columns, uint32_t[::1] values, index_t[::1] indices, uint32_t[::1] ends
) noexcept:
    cdef int64_t row, i, first, end, at = 0, count = words.shape[0]
    with nogil:
        for row in range(ends.shape[0]):
            first = row * columns
            end = min(first + columns, count)
            for i in range(first, end):
                values[at] = words[i]
                indices[at] = <index_t>(i - first)
                at += words[i] != 0
            ends[row] = <uint32_t>at


cdef int64_t scatter_rows(
    const uint32_t[::1] values, const index_t[::1] indices, const uint32_t[::1] ends, int64_t columns, uint32_t[::1] out
) noexcept:
    """Write the feature map; returns the first corrupt row, or -1."""
    cdef int64_t row, first, length, i, at = 0, count = out.shape[0], last
    with nogil:
        if count:
            memset(&out[0], 0, count * 4)
        for row in range(ends.shape[0]):
            first = row * columns
            length = min(columns, count - first)
            if ends[row] < at or ends[row] > values.shape[0]:
                return row
            last = -1
            for i in range(at, ends[row]):
                if indices[i] <= last or indices[i] >= length:
                    return row
                last = indices[i]
                out[first + last] = values[i]
            at = ends[row]
        if at != values.shape[0]:
            return ends.shape[0]
    return -1
