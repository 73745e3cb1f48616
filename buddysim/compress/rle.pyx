"""Run-length encoding of tensors, exactly as docs/compression.md defines it: runs of zeros (cDMA) or of any value (CSWAP).

`naive_rle` is the readable twin.
"""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

import numpy as np

from buddysim.base.errors import BuddysimError
from buddysim.compress.windows import TENSOR_WINDOW, check_length, check_window, window_count

cdef enum:
    WORD = 4                    # bytes
    LONGEST = 255               # what a count's byte holds

ORDER = 30
TWIN = "buddysim.compress.naive_rle"
#: A single entry is too short for runs: data are always windows.
TENSORS_ONLY = True

#: Options and their defaults. ``kind``: "zero" or "value"; ``window``: bytes that are compressed on their own;
#: ``raw_fallback``: one bit more per window, and none gets longer than that.
OPTIONS = {"kind": "zero", "window": TENSOR_WINDOW, "raw_fallback": False}

KINDS = ("zero", "value")


def provenance():
    """What runs are of by default, for results."""
    return f"kind {OPTIONS['kind']}"


def compressed_bits(const uint8_t[::1] data not None, *, kind="zero", window=4096, bint raw_fallback=False):
    """Size of every window.

    Parameters
    ----------
    data : whole words of 32 bits
    kind : "zero": a count of zero words, a count of others, and those; "value": a word and how often it follows itself
    window : bytes per window, at most 65536; the last one may be short
    raw_fallback : a window may be stored as it is; costs a bit per window

    Returns
    -------
    uint32 array, bits per window
    """
    cdef int64_t i, nbytes, size, step, windows, total = data.shape[0]
    cdef bint values = _values(kind)
    check_window("rle", window, WORD)
    check_length("rle", total, WORD)
    step, windows = window, window_count(total, window)
    bits = np.empty(windows, dtype=np.uint32)
    cdef uint32_t[::1] out = bits
    with nogil:
        for i in range(windows):
            nbytes = min(step, total - i * step)
            size = window_bytes(&data[i * step], nbytes // WORD, values)
            out[i] = <uint32_t>(min(size, nbytes) * 8 + 1 if raw_fallback else size * 8)
    return bits


def compress(const uint8_t[::1] data not None, *, kind="zero", window=4096, bint raw_fallback=False):
    """The windows' codes, one after the other; with `raw_fallback` after their flags, padded to whole bytes."""
    sizes = compressed_bits(data, kind=kind, window=window, raw_fallback=raw_fallback)
    cdef int64_t i, nbytes, size, step = window, windows = len(sizes), total = data.shape[0]
    cdef bint values = _values(kind)
    payload = PyBytes_FromStringAndSize(NULL, (int(sizes.sum(dtype=np.int64)) + 7) // 8)
    cdef uint8_t* flags = <uint8_t*>PyBytes_AS_STRING(payload)
    cdef uint8_t* out = flags
    if not windows:
        return payload
    with nogil:
        if raw_fallback:
            memset(flags, 0, (windows + 7) // 8)
            out += (windows + 7) // 8
        for i in range(windows):
            nbytes = min(step, total - i * step)
            if raw_fallback:
                size = window_bytes(&data[i * step], nbytes // WORD, values)
                if size > nbytes:
                    flags[i >> 3] |= <uint8_t>(1 << (i & 7))
                    memcpy(out, &data[i * step], nbytes)
                    out += nbytes
                    continue
            if values:
                out += encode_values(&data[i * step], nbytes // WORD, out)
            else:
                out += encode_zeros(&data[i * step], nbytes // WORD, out)
    return payload


def decompress(const uint8_t[::1] payload not None, int64_t nbytes, *, kind="zero", window=4096, bint raw_fallback=False):
    """What `compress` was given. Only what `compress` can give is taken; everything else is a `BuddysimError`."""
    cdef bint values = _values(kind), raw
    cdef int64_t i, taken, length = payload.shape[0], step, windows, size, at = 0
    check_window("rle", window, WORD)
    check_length("rle", nbytes, WORD)
    step, windows = window, window_count(nbytes, window)
    if nbytes // (LONGEST * WORD) > length:
        raise BuddysimError(f"rle: payload of {length} bytes: too short for {nbytes} bytes of data")
    data = PyBytes_FromStringAndSize(NULL, nbytes)
    cdef uint8_t* out = <uint8_t*>PyBytes_AS_STRING(data)
    cdef const uint8_t* code = &payload[0] if length else NULL
    cdef int64_t failed = -1
    with nogil:
        if raw_fallback:
            at = (windows + 7) // 8
            if at > length or (windows & 7 and code[at - 1] >> (windows & 7)):
                failed = 0
        for i in range(windows):
            if failed >= 0:
                break
            size = min(step, nbytes - i * step)
            raw = raw_fallback and code[i >> 3] >> (i & 7) & 1
            if raw:
                taken = size if length - at >= size else -1
                if taken > 0:
                    memcpy(out + i * step, code + at, size)
            elif values:
                taken = decode_values(code + at, length - at, size // WORD, out + i * step)
            else:
                taken = decode_zeros(code + at, length - at, size // WORD, out + i * step)
            if taken < 0 or raw_fallback and raw != (window_bytes(out + i * step, size // WORD, values) > size):
                failed = i
            else:
                at += taken
    if failed >= 0:
        raise BuddysimError(f"rle: payload: window {failed} is corrupt, from byte {at} of {length} on")
    if at != length:
        raise BuddysimError(f"rle: payload of {length} bytes: {nbytes} bytes of data end at byte {at} (corrupt)")
    return data


def _values(kind):
    """Whether runs are of any value."""
    if kind not in KINDS:
        raise BuddysimError(f"rle: kind {kind!r}: expected one of {', '.join(KINDS)}")
    return kind == "value"


cdef inline uint32_t word_at(const uint8_t* data, int64_t i) noexcept nogil:
    cdef uint32_t word
    memcpy(&word, data + i * WORD, WORD)
    return word


cdef int64_t window_bytes(const uint8_t* data, int64_t words, bint values) noexcept nogil:
    """Bytes of a window's code."""
    cdef int64_t size = 0, i = 0, run
    cdef uint32_t value
    while i < words:
        if values:
            value, run = word_at(data, i), i
            i += 1
            while i < words and i - run < LONGEST and word_at(data, i) == value:
                i += 1
            size += WORD + 1
        else:
            run = i
            while i < words and i - run < LONGEST and word_at(data, i) == 0:
                i += 1
            run = i
            while i < words and i - run < LONGEST and word_at(data, i) != 0:
                i += 1
            size += 2 + (i - run) * WORD
    return size


cdef int64_t encode_zeros(const uint8_t* data, int64_t words, uint8_t* out) noexcept nogil:
    """Writes a window's segments; the number of bytes."""
    cdef uint8_t* start = out
    cdef int64_t i = 0, run
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


cdef int64_t encode_values(const uint8_t* data, int64_t words, uint8_t* out) noexcept nogil:
    """Writes a window's pairs; the number of bytes."""
    cdef uint8_t* start = out
    cdef int64_t i = 0, run
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


cdef int64_t decode_zeros(const uint8_t* code, int64_t length, int64_t words, uint8_t* out) noexcept nogil:
    """Takes a window's segments; the number of bytes, or -1 where `encode_zeros` can't have written them."""
    cdef int64_t at = 0, i = 0, zeros, others, k, before = LONGEST
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


cdef int64_t decode_values(const uint8_t* code, int64_t length, int64_t words, uint8_t* out) noexcept nogil:
    """Takes a window's pairs; the number of bytes, or -1 where `encode_values` can't have written them."""
    cdef int64_t at = 0, i = 0, run, k, before = LONGEST
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
