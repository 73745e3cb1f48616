"""Zero-value compression (cDMA, HPCA 2018, Sec. V-A), exactly as docs/reference/compressors.md defines it.

`ref_zvc` is the reference model.
"""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

import numpy as np

from buddysim.base.errors import BuddysimError
from buddysim.compress.size_classes import ENTRY_BYTES
from buddysim.compress.windows import check_length, check_window, window_count

cdef extern from "zero_words.h" nogil:
    int64_t nonzero_words(const uint8_t* data, int64_t nbytes, int word_bytes) noexcept

cdef extern from "zvc_groups.h" nogil:
    const int ZVC_GROUP         # words that share a mask
    const int ZVC_SCALAR
    const int ZVC_AVX2
    int zvc_begin() noexcept
    int64_t zvc_encode_groups(
        int path, int word_bytes, const uint8_t* data, int64_t groups, uint8_t** code, const uint8_t* end
    ) noexcept
    int64_t zvc_decode_groups(
        int path, int word_bytes, const uint8_t** code, const uint8_t* end, int64_t groups, uint8_t* data, int* wrong
    ) noexcept

ORDER = 20
REFERENCE = "tests.reference.compress.ref_zvc"
MASK_BITS_PER_WORD = 1

#: Implementations of both directions; all give the same results, and this processor has those up to `best_path()`.
PATHS = ("scalar", "avx2")
cdef int fastest = zvc_begin()

#: Options and their defaults. ``word_bits``: 8, 16 or 32; ``window``: bytes that are compressed on their own, an entry
#: where none is given; ``raw_fallback``: one bit more per window, and none gets longer than that.
OPTIONS = {"word_bits": 32, "window": ENTRY_BYTES, "raw_fallback": False}

cdef struct Bits:
    # A stream of bits, the lowest of a byte first.
    uint8_t* bytes
    int64_t position            # in bits
    int64_t end                 # in bits


def best_path():
    """The name of the fastest path on this processor."""
    return PATHS[fastest]


def fraction_of_density(density, masks=True):
    """Bytes of the code over the data's: the words of 32 bits that aren't zero, and a mask bit for each word."""
    return density + masks * MASK_BITS_PER_WORD / 32


def compressed_bits(const uint8_t[::1] data not None, *, word_bits=32, window=128, bint raw_fallback=False):
    """Size of every window: a mask bit per word and the non-zero words.

    Parameters
    ----------
    data : whole words
    word_bits : 8, 16 or 32; -0.0 is not a zero word
    window : bytes per window, at most 65536; the last one may be short
    raw_fallback : whether a window may be stored raw; costs a bit per window

    Returns
    -------
    uint32 array, bits per window
    """
    cdef int64_t i, first, nbytes, size, total = data.shape[0]
    cdef int word_bytes = _word_bytes(word_bits)
    check_window("zvc", window, word_bytes)
    check_length("zvc", total, word_bytes)
    cdef int64_t length = window, windows = window_count(total, window)
    bits = np.empty(windows, dtype=np.uint32)
    cdef uint32_t[::1] out = bits
    with nogil:
        for i in range(windows):
            first = i * length
            nbytes = min(length, total - first)
            size = nbytes // word_bytes + nonzero_words(&data[first], nbytes, word_bytes) * word_bytes * 8
            out[i] = <uint32_t>(min(size, nbytes * 8) + 1 if raw_fallback else size)
    return bits


def compress(const uint8_t[::1] data not None, *, word_bits=32, window=128, bint raw_fallback=False, path=None):
    """Return the windows' codes in sequence, with zero bits up to the last byte's end; `path`: one of `PATHS`."""
    sizes = compressed_bits(data, word_bits=word_bits, window=window, raw_fallback=raw_fallback)
    cdef int64_t bits = int(sizes.sum(dtype=np.int64)), windows = len(sizes), step = window
    cdef int word_bytes = word_bits // 8, path_number = _path(path)
    payload = PyBytes_FromStringAndSize(NULL, (bits + 7) // 8)
    cdef Bits stream
    if not windows:
        return payload
    stream.bytes, stream.position, stream.end = <uint8_t*>PyBytes_AS_STRING(payload), 0, bits
    with nogil:
        encode(&data[0], data.shape[0], step, windows, word_bytes, raw_fallback, path_number, &stream)
    return payload


def decompress(
    const uint8_t[::1] payload not None,
    int64_t nbytes,
    *,
    word_bits=32,
    window=128,
    bint raw_fallback=False,
    path=None,
):
    """Return the data of a payload. A payload that `compress` cannot return is a `BuddysimError`."""
    cdef int word_bytes = _word_bytes(word_bits), path_number = _path(path)
    cdef int64_t windows, step, failed = -1, length = payload.shape[0]
    cdef Bits stream
    check_window("zvc", window, word_bytes)
    check_length("zvc", nbytes, word_bytes)
    if nbytes // word_bytes > length * 8:
        raise BuddysimError(f"zvc: payload of {length} bytes: too short for {nbytes} bytes of data")
    windows, step = window_count(nbytes, window), window
    data = PyBytes_FromStringAndSize(NULL, nbytes)
    cdef uint8_t* out = <uint8_t*>PyBytes_AS_STRING(data)
    stream.position = 0
    if windows:
        # Decoding doesn't write to the stream.
        stream.bytes, stream.end = <uint8_t*>&payload[0], length * 8
        with nogil:
            failed = decode(&stream, nbytes, step, windows, word_bytes, raw_fallback, path_number, out)
    if failed >= 0:
        raise BuddysimError(f"zvc: payload: window {failed} is corrupt near bit {stream.position} of {length * 8}")
    if (stream.position + 7) // 8 != length or (stream.position & 7 and payload[length - 1] >> (stream.position & 7)):
        raise BuddysimError(f"zvc: payload of {length} bytes: not what {nbytes} bytes of data compress to (corrupt)")
    return data


def _word_bytes(word_bits):
    """Bytes of a word."""
    if word_bits not in (8, 16, 32):
        raise BuddysimError(f"zvc: word_bits {word_bits}: expected 8, 16 or 32")
    return word_bits // 8


def _path(path):
    """The number of a path that this processor has."""
    if path is None:
        return fastest
    if path not in PATHS[: fastest + 1]:
        raise BuddysimError(f"zvc: path {path!r}: expected one of {', '.join(PATHS[: fastest + 1])}")
    return PATHS.index(path)


cdef void encode(
    const uint8_t* data,
    int64_t nbytes,
    int64_t window,
    int64_t windows,
    int word_bytes,
    bint raw_fallback,
    int path,
    Bits* stream,
) noexcept nogil:
    """Appends every window to a stream of exactly the needed size."""
    cdef int64_t i, first, end, at
    cdef int64_t group = ZVC_GROUP * word_bytes
    cdef uint8_t* code
    if raw_fallback:
        for i in range(windows):
            put_bits(stream, is_raw(&data[i * window], min(window, nbytes - i * window), word_bytes), 1)
    for i in range(windows):
        first = i * window
        end = min(first + window, nbytes)
        if raw_fallback and stream.bytes[i >> 3] >> (i & 7) & 1:
            put_bytes(stream, &data[first], end - first)
            continue
        at = first
        while at < end:
            if stream.position & 7 == 0:
                code = stream.bytes + (stream.position >> 3)
                at += group * zvc_encode_groups(
                    path, word_bytes, &data[at], (end - at) // group, &code, stream.bytes + ((stream.end + 7) >> 3)
                )
                stream.position = (code - stream.bytes) * 8
            if at < end:
                encode_part(&data[at], min(group, end - at) // word_bytes, word_bytes, stream)
                at += group


cdef inline bint is_raw(const uint8_t* data, int64_t nbytes, int word_bytes) noexcept nogil:
    """Return whether the code of a window is longer than the window."""
    return nbytes // word_bytes + nonzero_words(data, nbytes, word_bytes) * word_bytes * 8 > nbytes * 8


cdef void encode_part(const uint8_t* data, int64_t words, int word_bytes, Bits* stream) noexcept nogil:
    """Appends up to 32 words at any bit."""
    cdef int64_t i
    cdef uint32_t mask = 0
    for i in range(words):
        mask |= <uint32_t>(word_at(data + i * word_bytes, word_bytes) != 0) << i
    put_bits(stream, mask, <int>words)
    for i in range(words):
        if mask >> i & 1:
            put_bits(stream, word_at(data + i * word_bytes, word_bytes), 8 * word_bytes)


cdef inline uint32_t word_at(const uint8_t* data, int word_bytes) noexcept nogil:
    """A little-endian word."""
    cdef uint32_t word = data[0]
    cdef int byte
    for byte in range(1, word_bytes):
        word |= <uint32_t>data[byte] << 8 * byte
    return word


cdef inline void put_bits(Bits* stream, uint32_t value, int count) noexcept nogil:
    """Appends the low `count` bits, the lowest first; the rest of `value` is zero. Bits up to the byte's end become zero."""
    cdef int shift = stream.position & 7
    cdef uint64_t bits = <uint64_t>value << shift
    cdef uint8_t* out = stream.bytes + (stream.position >> 3)
    if count == 0:
        return
    stream.position += count
    if shift:
        bits |= out[0] & ((1 << shift) - 1)
    count += shift
    while count > 0:
        out[0] = bits & 0xFF
        out += 1
        bits >>= 8
        count -= 8


cdef int64_t decode(
    Bits* stream,
    int64_t nbytes,
    int64_t window,
    int64_t windows,
    int word_bytes,
    bint raw_fallback,
    int path,
    uint8_t* out,
) noexcept nogil:
    """Takes every window; the number of the first that can't be right, or -1."""
    cdef int64_t i, first, end, at
    cdef int64_t group = ZVC_GROUP * word_bytes
    cdef const uint8_t* code
    cdef bint raw
    cdef int wrong
    if raw_fallback:
        if stream.end < windows:
            return 0
        stream.position = windows
    for i in range(windows):
        first = i * window
        end = min(first + window, nbytes)
        raw = raw_fallback and stream.bytes[i >> 3] >> (i & 7) & 1
        if raw and stream.position + (end - first) * 8 > stream.end:
            return i
        if raw:
            take_bytes(stream, &out[first], end - first)
        at = end if raw else first
        while at < end:
            if stream.position & 7 == 0:
                code = stream.bytes + (stream.position >> 3)
                at += group * zvc_decode_groups(
                    path, word_bytes, &code, stream.bytes + (stream.end >> 3), (end - at) // group, &out[at], &wrong
                )
                stream.position = (code - stream.bytes) * 8
                if wrong:
                    return i
            if at < end:
                if not decode_part(stream, min(group, end - at) // word_bytes, word_bytes, &out[at]):
                    return i
                at += group
        if raw_fallback and raw != is_raw(&out[first], end - first, word_bytes):
            return i
    return -1


cdef bint decode_part(Bits* stream, int64_t words, int word_bytes, uint8_t* out) noexcept nogil:
    """Takes up to 32 words at any bit."""
    cdef uint32_t mask, word
    cdef int64_t i
    cdef int byte
    if stream.position + words > stream.end:
        return False
    mask = take_bits(stream, <int>words)
    for i in range(words):
        word = 0
        if mask >> i & 1:
            if stream.position + 8 * word_bytes > stream.end:
                return False
            word = take_bits(stream, 8 * word_bytes)
            if word == 0:
                return False
        for byte in range(word_bytes):
            out[i * word_bytes + byte] = word >> 8 * byte & 0xFF
    return True


cdef void put_bytes(Bits* stream, const uint8_t* data, int64_t nbytes) noexcept nogil:
    """Appends bytes at any bit."""
    cdef int64_t at = 0
    if stream.position & 7 == 0:
        memcpy(stream.bytes + (stream.position >> 3), data, nbytes)
        stream.position += nbytes * 8
        return
    while at + 4 <= nbytes:
        put_bits(stream, word_at(data + at, 4), 32)
        at += 4
    while at < nbytes:
        put_bits(stream, data[at], 8)
        at += 1


cdef void take_bytes(Bits* stream, uint8_t* out, int64_t nbytes) noexcept nogil:
    """The next bytes of a stream that has them."""
    cdef int64_t at
    if stream.position & 7 == 0:
        memcpy(out, stream.bytes + (stream.position >> 3), nbytes)
        stream.position += nbytes * 8
        return
    for at in range(nbytes):
        out[at] = <uint8_t>take_bits(stream, 8)


cdef inline uint32_t take_bits(Bits* stream, int count) noexcept nogil:
    """The next `count` (at most 32) bits of a stream that has them."""
    cdef uint64_t value = 0
    cdef int64_t byte = stream.position >> 3
    cdef int have = -<int>(stream.position & 7), shift = 0
    while have < count:
        value |= <uint64_t>stream.bytes[byte] << shift
        byte += 1
        shift += 8
        have += 8
    value >>= stream.position & 7
    stream.position += count
    return <uint32_t>(value & ((<uint64_t>1 << count) - 1))
