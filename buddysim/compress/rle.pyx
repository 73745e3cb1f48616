"""Run-length encoding of tensors (docs/reference/compressors.md): runs of zeros (cDMA) or of any value (CSWAP).

`ref_rle` is the reference model.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

from buddysim.compress.byte_windows cimport ByteCodec, code_bits, decoded, encoded

from buddysim.base.errors import BuddysimError
from buddysim.compress.windows import TENSOR_WINDOW, check_length, check_window

cdef enum:
    WORD = 4                    # bytes
    LONGEST = 255               # what a count's byte holds

ORDER = 30
REFERENCE = "tests.reference.compress.ref_rle"
#: A single entry is too short for runs: data are always windows.
TENSORS_ONLY = True

#: Options and their defaults. ``kind``: "zero" or "value"; ``window``: bytes that are compressed on their own;
#: ``raw_fallback``: one bit more per window, and none gets longer than that.
OPTIONS = {"kind": "zero", "window": TENSOR_WINDOW, "raw_fallback": False}

KINDS = ("zero", "value")


def provenance():
    """Return the default kind of runs, for results."""
    return f"kind {OPTIONS['kind']}"


def compressed_bits(const uint8_t[::1] data not None, *, kind="zero", window=4096, bint raw_fallback=False):
    """Size of every window.

    Parameters
    ----------
    data : whole words of 32 bits
    kind : "zero": a count of zero words, a count of others, and those; "value": a word and how often it follows itself
    window : bytes per window, at most 65536; the last one may be short
    raw_fallback : whether a window may be stored raw; costs a bit per window

    Returns
    -------
    uint32 array, bits per window
    """
    cdef ByteCodec codec = _codec(kind, window, raw_fallback)
    check_length("rle", data.shape[0], WORD)
    return code_bits(data, &codec)


def compress(const uint8_t[::1] data not None, *, kind="zero", window=4096, bint raw_fallback=False):
    """Return the windows' codes in sequence, padded to whole bytes; with `raw_fallback` flags precede them."""
    cdef ByteCodec codec = _codec(kind, window, raw_fallback)
    check_length("rle", data.shape[0], WORD)
    return encoded(data, &codec)


def decompress(const uint8_t[::1] payload not None, int64_t nbytes, *, kind="zero", window=4096, bint raw_fallback=False):
    """Return the data of a payload. A payload that `compress` cannot return is a `BuddysimError`."""
    cdef ByteCodec codec = _codec(kind, window, raw_fallback)
    check_length("rle", nbytes, WORD)
    if nbytes // (LONGEST * WORD) > payload.shape[0]:
        raise BuddysimError(f"rle: payload of {payload.shape[0]} bytes: too short for {nbytes} bytes of data")
    return decoded("rle", payload, nbytes, &codec)


cdef ByteCodec _codec(kind, window, bint raw_fallback):
    """Processing of one window."""
    cdef ByteCodec codec
    check_window("rle", window, WORD)
    if kind not in KINDS:
        raise BuddysimError(f"rle: kind {kind!r}: expected one of {', '.join(KINDS)}")
    if kind == "value":
        codec.size, codec.encode, codec.decode = bytes_of_values, encode_values, decode_values
    else:
        codec.size, codec.encode, codec.decode = bytes_of_zeros, encode_zeros, decode_zeros
    codec.shape, codec.window, codec.raw_fallback = NULL, window, raw_fallback
    return codec


cdef inline uint32_t word_at(const uint8_t* data, int64_t i) noexcept nogil:
    cdef uint32_t word
    memcpy(&word, data + i * WORD, WORD)
    return word


cdef int64_t bytes_of_zeros(const uint8_t* data, int64_t nbytes, const void* shape) noexcept nogil:
    """Bytes of a window's code by runs of zeros."""
    cdef int64_t size = 0, i = 0, run, words = nbytes // WORD
    while i < words:
        run = i
        while i < words and i - run < LONGEST and word_at(data, i) == 0:
            i += 1
        run = i
        while i < words and i - run < LONGEST and word_at(data, i) != 0:
            i += 1
        size += 2 + (i - run) * WORD
    return size


cdef int64_t bytes_of_values(const uint8_t* data, int64_t nbytes, const void* shape) noexcept nogil:
    """Bytes of a window's code by runs of any value."""
    cdef int64_t size = 0, i = 0, run, words = nbytes // WORD
    cdef uint32_t value
    while i < words:
        value, run = word_at(data, i), i
        i += 1
        while i < words and i - run < LONGEST and word_at(data, i) == value:
            i += 1
        size += WORD + 1
    return size


cdef int64_t encode_zeros(const uint8_t* data, int64_t nbytes, const void* shape, uint8_t* out) noexcept nogil:
    """Writes a window's segments; the number of bytes."""
    cdef uint8_t* start = out
    cdef int64_t i = 0, run, words = nbytes // WORD
    while i < words:
        run = i
        while i < words and i - run < LONGEST and word_at(data, i) == 0:
            i += 1
        out[0] = <uint8_t>(i - run)
        run = i
        while i < words and i - run < LONGEST and word_at(data, i) != 0:
            i += 1
        out[1] = <uint8_t>(i - run)
        memcpy(out + 2, data + run * WORD, (i - run) * WORD)
        out += 2 + (i - run) * WORD
    return out - start


cdef int64_t encode_values(const uint8_t* data, int64_t nbytes, const void* shape, uint8_t* out) noexcept nogil:
    """Writes a window's pairs; the number of bytes."""
    cdef uint8_t* start = out
    cdef int64_t i = 0, run, words = nbytes // WORD
    cdef uint32_t value
    while i < words:
        value, run = word_at(data, i), i
        i += 1
        while i < words and i - run < LONGEST and word_at(data, i) == value:
            i += 1
        memcpy(out, &value, WORD)
        out[WORD] = <uint8_t>(i - run)
        out += WORD + 1
    return out - start


cdef int64_t decode_zeros(
    const uint8_t* code, int64_t length, int64_t nbytes, const void* shape, uint8_t* out
) noexcept nogil:
    """Takes a window's segments; the number of bytes, or -1 where `encode_zeros` can't have written them."""
    cdef int64_t at = 0, i = 0, zeros, others, k, before = LONGEST, words = nbytes // WORD
    while i < words:
        if length - at < 2:
            return -1
        zeros, others = code[at], code[at + 1]
        at += 2
        # Runs are as long as they can be.
        if zeros + others == 0 or i + zeros + others > words or length - at < others * WORD:
            return -1
        if (zeros == 0 and before != LONGEST) or (others == 0 and zeros != LONGEST and i + zeros != words):
            return -1
        memset(out + i * WORD, 0, zeros * WORD)
        i += zeros
        for k in range(others):
            if word_at(code + at, k) == 0:
                return -1
        memcpy(out + i * WORD, code + at, others * WORD)
        i += others
        at += others * WORD
        before = others
    return at


cdef int64_t decode_values(
    const uint8_t* code, int64_t length, int64_t nbytes, const void* shape, uint8_t* out
) noexcept nogil:
    """Takes a window's pairs; the number of bytes, or -1 where `encode_values` can't have written them."""
    cdef int64_t at = 0, i = 0, run, k, before = LONGEST, words = nbytes // WORD
    cdef uint32_t value
    while i < words:
        if length - at < WORD + 1:
            return -1
        value, run = word_at(code + at, 0), code[at + WORD]
        at += WORD + 1
        if run == 0 or i + run > words or (before != LONGEST and word_at(out, i - 1) == value):
            return -1
        for k in range(run):
            memcpy(out + (i + k) * WORD, &value, WORD)
        i += run
        before = run
    return at
