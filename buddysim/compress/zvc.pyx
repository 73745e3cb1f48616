"""Zero-value compression (cDMA, HPCA 2018, Sec. V-A), exactly as docs/compression.md defines it.

`naive_zvc` is the readable twin.
"""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

import numpy as np

from buddysim.compress.size_classes import ENTRY_BYTES
from buddysim.compress.windows import check_length, check_window, window_count
from buddysim.errors import BuddysimError

cdef extern from "zero_words.h" nogil:
    int64_t nonzero_words(const uint8_t* data, int64_t nbytes, int word_bytes) noexcept

cdef enum:
    GROUP = 32                  # words that share a mask
    MASK_BYTES = 4

#: Options and their defaults. ``word_bits``: 8, 16 or 32; ``window``: bytes that are compressed on their own, an entry
#: where none is given; ``raw_fallback``: one bit more per window, and none gets longer than that.
OPTIONS = {"word_bits": 32, "window": ENTRY_BYTES, "raw_fallback": False}

ctypedef fused word_type:
    uint8_t
    uint16_t
    uint32_t


cdef struct Bits:
    # A stream of bits, the lowest of a byte first.
    uint8_t* bytes
    int64_t position            # in bits
    int64_t end                 # in bits


def compressed_bits(const uint8_t[::1] data not None, *, word_bits=32, window=128, bint raw_fallback=False):
    """Size of every window: a mask bit per word and the non-zero words.

    Parameters
    ----------
    data : whole words
    word_bits : 8, 16 or 32; -0.0 is not a zero word
    window : bytes per window, at most 65536; the last one may be short
    raw_fallback : a window may be stored as it is; costs a bit per window

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


def compress(const uint8_t[::1] data not None, *, word_bits=32, window=128, bint raw_fallback=False):
    """The windows' codes, one after the other, zero bits up to the last byte's end."""
    sizes = compressed_bits(data, word_bits=word_bits, window=window, raw_fallback=raw_fallback)
    cdef int64_t bits = int(sizes.sum(dtype=np.int64)), windows = len(sizes), step = window
    cdef int word_bytes = word_bits // 8
    payload = PyBytes_FromStringAndSize(NULL, (bits + 7) // 8)
    cdef Bits stream
    if not windows:
        return payload
    stream.bytes, stream.position, stream.end = <uint8_t*>PyBytes_AS_STRING(payload), 0, bits
    with nogil:
        if word_bytes == 1:
            encode[uint8_t](&data[0], data.shape[0], step, windows, raw_fallback, &stream, 0)
        elif word_bytes == 2:
            encode[uint16_t](&data[0], data.shape[0], step, windows, raw_fallback, &stream, 0)
        else:
            encode[uint32_t](&data[0], data.shape[0], step, windows, raw_fallback, &stream, 0)
    return payload


def decompress(
    const uint8_t[::1] payload not None, int64_t nbytes, *, word_bits=32, window=128, bint raw_fallback=False
):
    """What `compress` was given. Only what `compress` can give is taken; everything else is a `BuddysimError`."""
    cdef int word_bytes = _word_bytes(word_bits)
    cdef int64_t windows, step, failed, length = payload.shape[0]
    cdef Bits stream
    check_window("zvc", window, word_bytes)
    check_length("zvc", nbytes, word_bytes)
    if nbytes // word_bytes > length * 8:
        raise BuddysimError(f"zvc: payload of {length} bytes: too short for {nbytes} bytes of data")
    windows, step = window_count(nbytes, window), window
    data = PyBytes_FromStringAndSize(NULL, nbytes)
    cdef uint8_t* out = <uint8_t*>PyBytes_AS_STRING(data)
    failed = -1
    stream.position = 0
    if windows:
        # Decoding doesn't write to the stream.
        stream.bytes, stream.end = <uint8_t*>&payload[0], length * 8
        with nogil:
            if word_bytes == 1:
                failed = decode[uint8_t](&stream, nbytes, step, windows, raw_fallback, out, 0)
            elif word_bytes == 2:
                failed = decode[uint16_t](&stream, nbytes, step, windows, raw_fallback, out, 0)
            else:
                failed = decode[uint32_t](&stream, nbytes, step, windows, raw_fallback, out, 0)
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


cdef void encode(
    const uint8_t* data, int64_t nbytes, int64_t window, int64_t windows, bint raw_fallback, Bits* stream, word_type _
) noexcept nogil:
    """Appends every window to a stream that has just the room."""
    cdef int64_t i, first, end, at
    cdef int64_t step = GROUP * sizeof(word_type)
    if raw_fallback:
        for i in range(windows):
            put_bits(stream, is_raw(&data[i * window], min(window, nbytes - i * window), <word_type>0), 1)
    for i in range(windows):
        first = i * window
        end = min(first + window, nbytes)
        if raw_fallback and stream.bytes[i >> 3] >> (i & 7) & 1:
            for at in range(first, end):
                put_bits(stream, data[at], 8)
            continue
        at = first
        while at < end:
            # A whole group is written as if all its words were kept.
            if end - at >= step and stream.position & 7 == 0 and stream.end - stream.position >= (step + MASK_BYTES) * 8:
                encode_group(&data[at], stream, <word_type>0)
            else:
                encode_part(&data[at], min(step, end - at) // <int64_t>sizeof(word_type), stream, <word_type>0)
            at += step


cdef inline bint is_raw(const uint8_t* data, int64_t nbytes, word_type _) noexcept nogil:
    """Whether a window is longer as a code than as it is."""
    cdef int64_t words = nbytes // <int64_t>sizeof(word_type)
    cdef int64_t kept = nonzero_words(data, nbytes, sizeof(word_type))
    return words + kept * <int64_t>sizeof(word_type) * 8 > nbytes * 8


cdef inline void encode_group(const uint8_t* data, Bits* stream, word_type _) noexcept nogil:
    """Appends 32 words to a stream that is at a whole byte; without branches that depend on the data."""
    cdef word_type word
    cdef uint32_t mask = 0, one
    cdef uint8_t* out = stream.bytes + (stream.position >> 3)
    cdef int i, kept = 0
    for i in range(GROUP):
        memcpy(&word, data + i * <int>sizeof(word_type), sizeof(word_type))
        memcpy(out + MASK_BYTES + kept * <int>sizeof(word_type), &word, sizeof(word_type))
        one = word != 0
        mask |= one << i
        kept += one
    for i in range(MASK_BYTES):
        out[i] = mask >> 8 * i & 0xFF
    stream.position += GROUP + kept * <int>sizeof(word_type) * 8


cdef inline void encode_part(const uint8_t* data, int64_t words, Bits* stream, word_type _) noexcept nogil:
    """Appends up to 32 words at any bit."""
    cdef int64_t i
    cdef int byte
    cdef word_type word
    cdef uint32_t mask = 0
    for i in range(words):
        memcpy(&word, data + i * <int64_t>sizeof(word_type), sizeof(word_type))
        mask |= <uint32_t>(word != 0) << i
    put_bits(stream, mask, <int>words)
    for i in range(words):
        if mask >> i & 1:
            for byte in range(<int>sizeof(word_type)):
                put_bits(stream, data[i * <int64_t>sizeof(word_type) + byte], 8)


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
    Bits* stream, int64_t nbytes, int64_t window, int64_t windows, bint raw_fallback, uint8_t* out, word_type _
) noexcept nogil:
    """Takes every window; the number of the first that can't be right, or -1."""
    cdef int64_t i, first, end, at
    cdef int64_t step = GROUP * sizeof(word_type)
    cdef bint raw, good
    if raw_fallback:
        if stream.end < windows:
            return 0
        stream.position = windows
    for i in range(windows):
        first = i * window
        end = min(first + window, nbytes)
        raw = raw_fallback and stream.bytes[i >> 3] >> (i & 7) & 1
        if raw:
            good = stream.position + (end - first) * 8 <= stream.end
            if good:
                for at in range(first, end):
                    out[at] = take_bits(stream, 8)
        else:
            good = True
            at = first
            while good and at < end:
                if end - at >= step and stream.position & 7 == 0:
                    good = decode_group(stream, &out[at], <word_type>0)
                else:
                    good = decode_part(stream, min(step, end - at) // <int64_t>sizeof(word_type), &out[at], <word_type>0)
                at += step
        if not good or (raw_fallback and raw != is_raw(&out[first], end - first, <word_type>0)):
            return i
    return -1


cdef inline bint decode_group(Bits* stream, uint8_t* out, word_type _) noexcept nogil:
    """Takes 32 words from a stream that is at a whole byte; False where it ends early or keeps a zero word."""
    cdef const uint8_t* code = stream.bytes + (stream.position >> 3)
    cdef uint32_t mask = 0, one, wrong = 0
    cdef word_type word
    cdef int i, taken = 0, kept
    if stream.position + GROUP > stream.end:
        return False
    for i in range(MASK_BYTES):
        mask |= <uint32_t>code[i] << 8 * i
    kept = count_ones(mask)
    stream.position += GROUP + kept * <int>sizeof(word_type) * 8
    if stream.position > stream.end:
        return False
    if kept == 0:
        memset(out, 0, GROUP * sizeof(word_type))
        return True
    code += MASK_BYTES
    for i in range(GROUP):
        one = mask >> i & 1
        # Behind the last kept word only zeros follow: read that word again, not what lies behind it.
        memcpy(&word, code + (taken - (taken == kept)) * <int>sizeof(word_type), sizeof(word_type))
        word &= <word_type>(0 - one)
        wrong |= one & (word == 0)
        memcpy(out + i * <int>sizeof(word_type), &word, sizeof(word_type))
        taken += one
    return wrong == 0


cdef inline bint decode_part(Bits* stream, int64_t words, uint8_t* out, word_type _) noexcept nogil:
    """Takes up to 32 words at any bit."""
    cdef uint32_t mask
    cdef int64_t i
    cdef int byte
    cdef uint8_t any_bit
    if stream.position + words > stream.end:
        return False
    mask = take_bits(stream, <int>words)
    if stream.position + count_ones(mask) * <int>sizeof(word_type) * 8 > stream.end:
        return False
    for i in range(words):
        any_bit = 0
        for byte in range(<int>sizeof(word_type)):
            out[byte] = take_bits(stream, 8) if mask >> i & 1 else 0
            any_bit |= out[byte]
        if any_bit == 0 and mask >> i & 1:
            return False
        out += sizeof(word_type)
    return True


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


cdef inline int count_ones(uint32_t value) noexcept nogil:
    value -= value >> 1 & 0x55555555
    value = (value & 0x33333333) + (value >> 2 & 0x33333333)
    return <int>(((value + (value >> 4)) & 0x0F0F0F0F) * 0x01010101 >> 24)
