"""Compressed sparse rows of tensors (CSWAP and cuSPARSE; Gist with narrow rows), as docs/reference/compressors.md defines them.

`ref_csr` is the reference model.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

from buddysim.compress.byte_windows cimport ByteCodec, code_bits, decoded, encoded

from buddysim.base.errors import BuddysimError
from buddysim.compress.windows import TENSOR_WINDOW, check_length, check_window, window_count

cdef extern from "zero_words.h" nogil:
    int64_t nonzero_words(const uint8_t* data, int64_t nbytes, int word_bytes) noexcept

cdef enum:
    WORD = 4                    # bytes
    POINTER = 4                 # bytes
    NARROW_COLUMNS = 256        # what an index of one byte can tell apart

ORDER = 35
REFERENCE = "tests.reference.compress.ref_csr"
#: Rows are of a tensor, not of a single entry.
TENSORS_ONLY = True

#: Options and their defaults. ``index_bytes``: 4 or 1; ``columns``: words of a row, 0 for 256 with an index of 1 byte
#: and for all of a window with one of 4; ``window``: bytes that are compressed on their own; ``raw_fallback``: one bit
#: more per window, and none gets longer than that.
OPTIONS = {"index_bytes": 4, "columns": 0, "window": TENSOR_WINDOW, "raw_fallback": False}

cdef struct Shape:
    int64_t columns
    int index_bytes


def provenance():
    """The width of an index by default, for results."""
    return f"index of {OPTIONS['index_bytes']} B"


def compressed_bits(
    const uint8_t[::1] data not None, *, index_bytes=4, columns=0, window=4096, bint raw_fallback=False
):
    """Size of every window: a pointer per row, an index and the word for each word that isn't zero.

    Parameters
    ----------
    data : whole words of 32 bits; -0.0 is not a zero word
    index_bytes : 4 or 1
    columns : words of a row, 0: 256 with an index of 1 byte, all of a window with one of 4
    window : bytes per window, at most 65536; the last one may be short
    raw_fallback : whether a window may be stored raw; costs a bit per window

    Returns
    -------
    uint32 array, bits per window
    """
    cdef Shape shape = _shape(index_bytes, columns, window)
    cdef ByteCodec codec = byte_codec(&shape, window, raw_fallback)
    check_length("csr", data.shape[0], WORD)
    return code_bits(data, &codec)


def compress(const uint8_t[::1] data not None, *, index_bytes=4, columns=0, window=4096, bint raw_fallback=False):
    """Return the windows' codes in sequence, padded to whole bytes; with `raw_fallback` flags precede them."""
    cdef Shape shape = _shape(index_bytes, columns, window)
    cdef ByteCodec codec = byte_codec(&shape, window, raw_fallback)
    check_length("csr", data.shape[0], WORD)
    return encoded(data, &codec)


def decompress(
    const uint8_t[::1] payload not None,
    int64_t nbytes,
    *,
    index_bytes=4,
    columns=0,
    window=4096,
    bint raw_fallback=False,
):
    """Return the data of a payload. A payload that `compress` cannot return is a `BuddysimError`."""
    cdef Shape shape = _shape(index_bytes, columns, window)
    cdef ByteCodec codec = byte_codec(&shape, window, raw_fallback)
    check_length("csr", nbytes, WORD)
    if window_count(nbytes, window) > payload.shape[0] // POINTER:
        raise BuddysimError(f"csr: payload of {payload.shape[0]} bytes: too short for {nbytes} bytes of data")
    return decoded("csr", payload, nbytes, &codec)


cdef ByteCodec byte_codec(const Shape* shape, int64_t window, bint raw_fallback) noexcept:
    cdef ByteCodec codec
    codec.size, codec.encode, codec.decode = window_bytes, encode_window, decode_window
    codec.shape, codec.window, codec.raw_fallback = shape, window, raw_fallback
    return codec


cdef Shape _shape(index_bytes, columns, window):
    """The rows of a window."""
    cdef Shape shape
    check_window("csr", window, WORD)
    if index_bytes not in (1, 4):
        raise BuddysimError(f"csr: index_bytes {index_bytes}: expected 1 or 4")
    most = NARROW_COLUMNS if index_bytes == 1 else window // WORD
    if not 0 <= columns <= most:
        raise BuddysimError(f"csr: columns {columns}: expected 0 to {most}, 0 for {most}")
    shape.columns, shape.index_bytes = columns or most, index_bytes
    return shape


cdef inline int64_t row_count(int64_t nbytes, const Shape* shape) noexcept nogil:
    return (nbytes // WORD + shape.columns - 1) // shape.columns


cdef int64_t window_bytes(const uint8_t* data, int64_t nbytes, const void* settings) noexcept nogil:
    """Bytes of a window's code."""
    cdef const Shape* shape = <const Shape*>settings
    return row_count(nbytes, shape) * POINTER + nonzero_words(data, nbytes, WORD) * (shape.index_bytes + WORD)


cdef inline uint32_t word_at(const uint8_t* data, int64_t i) noexcept nogil:
    cdef uint32_t word
    memcpy(&word, data + i * WORD, WORD)
    return word


cdef int64_t encode_window(const uint8_t* data, int64_t nbytes, const void* settings, uint8_t* out) noexcept nogil:
    """Writes a window's pointers, indices and words; the number of bytes."""
    cdef const Shape* shape = <const Shape*>settings
    cdef int64_t row, i, rows = row_count(nbytes, shape), words = nbytes // WORD
    cdef uint32_t n_nonzero = 0, word, column
    cdef uint8_t* indices = out + rows * POINTER
    cdef uint8_t* values = indices + nonzero_words(data, nbytes, WORD) * shape.index_bytes
    for row in range(rows):
        for i in range(row * shape.columns, min((row + 1) * shape.columns, words)):
            word = word_at(data, i)
            if word:
                column = <uint32_t>(i - row * shape.columns)
                memcpy(indices + n_nonzero * shape.index_bytes, &column, shape.index_bytes)
                memcpy(values + n_nonzero * WORD, &word, WORD)
                n_nonzero += 1
        memcpy(out + row * POINTER, &n_nonzero, POINTER)
    return values + n_nonzero * WORD - out


cdef int64_t decode_window(
    const uint8_t* code, int64_t length, int64_t nbytes, const void* settings, uint8_t* out
) noexcept nogil:
    """Takes a window's code; the number of bytes, or -1 where `encode_window` can't have written it."""
    cdef const Shape* shape = <const Shape*>settings
    cdef int64_t row, i, first, at = 0, rows = row_count(nbytes, shape), words = nbytes // WORD, last
    cdef int64_t n_nonzero, end, size
    cdef uint32_t column = 0
    cdef const uint8_t* indices
    cdef const uint8_t* values
    if length < rows * POINTER:
        return -1
    n_nonzero = word_at(code, rows - 1)
    size = rows * POINTER + n_nonzero * (shape.index_bytes + WORD)
    if n_nonzero > words or length < size:
        return -1
    indices = code + rows * POINTER
    values = indices + n_nonzero * shape.index_bytes
    memset(out, 0, nbytes)
    for row in range(rows):
        end, first, last = word_at(code, row), row * shape.columns, -1
        if end < at or end > n_nonzero:
            return -1
        for i in range(at, end):
            memcpy(&column, indices + i * shape.index_bytes, shape.index_bytes)
            if <int64_t>column <= last or column >= min(shape.columns, words - first) or word_at(values, i) == 0:
                return -1
            last = column
            memcpy(out + (first + last) * WORD, values + i * WORD, WORD)
        at = end
    return size
