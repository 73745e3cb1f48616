"""Bit-Plane Compression (Kim et al., ISCA 2016) of 128 B entries, exactly as docs/reference/compressors.md defines it.

Buddy Compression's compressor. `ref_bpc` is the reference model.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

import numpy as np

from buddysim.base.errors import BuddysimError
from buddysim.compress.bit_stream cimport BitStream, put_bits, take_bits
from buddysim.compress.entry_codes cimport EntryCode, compress_entries, decompress_entries

cdef enum:
    ENTRY = 128                 # bytes
    PLANES = 33
    PLANE_ONES = 0x7FFFFFFF     # a plane of 31 ones
    MIN_BITS = 10             # a zero entry
    MAX_BITS = 1089            # base and every plane verbatim

ORDER = 10
REFERENCE = "tests.reference.compress.ref_bpc"

#: Options and their defaults. ``unsigned``: words are unsigned numbers, so that deltas differ in bit 32 and above.
OPTIONS = {"unsigned": False}

#: Implementations of the sizes; all give the same results, and this processor has those up to `best_path()`.
PATHS = ("scalar", "vector4", "avx2")


def best_path():
    """The name of the fastest path on this processor."""
    return PATHS[bpc_best_path()]


def compressed_bits(const uint8_t[::1] data not None, *, bint unsigned=False, path=None):
    """Size of every entry.

    Parameters
    ----------
    data : whole entries of 128 B
    unsigned : read words as unsigned numbers
    path : one of `PATHS` that this processor has; None: the fastest

    Returns
    -------
    uint32 array, bits per entry, from 10 to 1089
    """
    cdef int64_t entries = data.shape[0] // ENTRY
    cdef int path_number = bpc_best_path()
    if path is not None:
        if path not in PATHS[: path_number + 1]:
            raise BuddysimError(f"bpc: path {path!r}: expected one of {', '.join(PATHS[: path_number + 1])}")
        path_number = PATHS.index(path)
    bits = np.empty(entries, dtype=np.uint32)
    cdef uint32_t[::1] out = bits
    if entries:
        with nogil:
            bpc_sizes(path_number, &data[0], entries, unsigned, &out[0])
    return bits


def compress(const uint8_t[::1] data not None, *, bint unsigned=False):
    """Return the bit streams of whole entries in sequence, with zero bits up to the last byte's end."""
    cdef EntryCode code = entry_code(&unsigned)
    return compress_entries(&code, data)


def decompress(const uint8_t[::1] payload not None, int64_t nbytes, *, bint unsigned=False):
    """Return the data of a payload. A payload that `compress` cannot return is a `BuddysimError`."""
    cdef EntryCode code = entry_code(&unsigned)
    return decompress_entries(&code, payload, nbytes)


cdef EntryCode entry_code(const bint* unsigned_words) noexcept:
    return EntryCode(
        name=b"bpc",
        min_bits=MIN_BITS,
        max_bits=MAX_BITS,
        encode=encode_entry,
        decode=decode_entry,
        setting=<const void*>unsigned_words,
    )


cdef void encode_entry(const uint8_t* entry, const void* setting, BitStream* stream) noexcept nogil:
    """Appends one entry: the base, then planes 32 to 0."""
    cdef bint unsigned_words = (<const bint*>setting)[0]
    cdef uint32_t words[32]
    cdef int64_t deltas[31]
    cdef uint32_t plane[PLANES]
    cdef int64_t base
    cdef uint32_t changed
    cdef int r, c, run
    memcpy(words, entry, ENTRY)
    for r in range(31):
        if unsigned_words:
            deltas[r] = <int64_t>words[r + 1] - <int64_t>words[r]
        else:
            deltas[r] = <int64_t><int32_t>words[r + 1] - <int64_t><int32_t>words[r]
    for c in range(PLANES):
        plane[c] = 0
        for r in range(31):
            plane[c] |= <uint32_t>(deltas[r] >> c & 1) << r

    base = <int64_t>words[0] if unsigned_words else <int64_t><int32_t>words[0]
    if base == 0:
        put_bits(stream, 0, 3)
    elif -8 <= base < 8:
        put_bits(stream, 1, 3)
        put_bits(stream, words[0], 4)
    elif -128 <= base < 128:
        put_bits(stream, 2, 3)
        put_bits(stream, words[0], 8)
    elif -32768 <= base < 32768:
        put_bits(stream, 3, 3)
        put_bits(stream, words[0], 16)
    else:
        put_bits(stream, 1, 1)
        put_bits(stream, words[0], 32)

    run = 0
    for c in range(PLANES - 1, -1, -1):
        changed = plane[c] ^ (plane[c + 1] if c < PLANES - 1 else 0)
        if changed == 0:
            run += 1
            continue
        put_run(stream, run)
        run = 0
        if changed == PLANE_ONES:
            put_bits(stream, 0, 5)
        elif plane[c] == 0:
            put_bits(stream, 1, 5)
        elif changed == 3 * (changed & (~changed + 1)):
            put_bits(stream, 2, 5)
            put_bits(stream, lowest_one(changed), 5)
        elif changed & (changed - 1) == 0:
            put_bits(stream, 3, 5)
            put_bits(stream, lowest_one(changed), 5)
        else:
            put_bits(stream, 1, 1)
            put_bits(stream, changed, 31)
    put_run(stream, run)


cdef inline void put_run(BitStream* stream, int run) noexcept nogil:
    """Appends a run of zero planes, if there is one."""
    if run == 1:
        put_bits(stream, 1, 3)
    elif run > 1:
        put_bits(stream, 1, 2)
        put_bits(stream, run - 2, 5)


cdef inline int lowest_one(uint32_t value) noexcept nogil:
    """Position of the lowest one of a value that has one."""
    cdef int position = 0
    while not value >> position & 1:
        position += 1
    return position


cdef bint decode_entry(BitStream* stream, const void* setting, uint8_t* entry) noexcept nogil:
    """Takes one entry from the stream; False where the stream ends early or no entry has this code."""
    cdef uint32_t words[32]
    cdef uint32_t plane[PLANES]
    cdef uint32_t above = 0, changed, delta
    cdef int64_t code, value
    cdef int r, c, n, _plane
    code = take_bits(stream, 1)
    if code == 1:
        value = take_bits(stream, 32)
        if value < 0:
            return False
        words[0] = <uint32_t>value
    else:
        code = take_bits(stream, 2)
        if code < 0:
            return False
        n = 0 if code == 0 else 2 << code
        value = take_bits(stream, n)
        if value < 0:
            return False
        if n and value >> (n - 1):
            value -= <int64_t>1 << n
        words[0] = <uint32_t>value

    c = PLANES - 1
    while c >= 0:
        if take_bits(stream, 1) == 1:
            value = take_bits(stream, 31)
            if value < 0:
                return False
            changed = <uint32_t>value
        elif take_bits(stream, 1) == 1:
            value = take_bits(stream, 5)
            if value < 0 or value + 2 > c + 1:
                return False
            for _plane in range(<int>value + 2):
                plane[c] = above
                c -= 1
            continue
        elif take_bits(stream, 1) == 1:
            changed = 0
        else:
            code = take_bits(stream, 2)
            if code == 0:
                changed = PLANE_ONES
            elif code == 1:
                changed = above
            elif code > 1:
                value = take_bits(stream, 5)
                if value < 0 or value > (29 if code == 2 else 30):
                    return False
                changed = <uint32_t>(3 if code == 2 else 1) << <int>value
            else:
                return False
        above ^= changed
        plane[c] = above
        c -= 1

    for r in range(31):
        delta = 0
        for c in range(32):
            delta |= (plane[c] >> r & 1) << c
        words[r + 1] = words[r] + delta
    memcpy(entry, words, ENTRY)
    return True
