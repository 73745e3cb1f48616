"""Frequent pattern compression (Alameldeen and Wood, 2004) of 128 B entries, as docs/reference/compressors.md defines it.

`ref_fpc` is the reference model.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

import numpy as np

from buddysim.base.errors import BuddysimError
from buddysim.compress.bit_stream cimport BitStream, put_bits, take_bits
from buddysim.compress.entry_codes cimport EntryCode, compress_entries, decompress_entries

cdef extern from "fpc_sizes.h" nogil:
    const int FPC_ZEROS
    const int FPC_SIGNED_4
    const int FPC_SIGNED_8
    const int FPC_SIGNED_16
    const int FPC_LOW_HALF_ZERO
    const int FPC_TWO_HALVES
    const int FPC_EQUAL_BYTES
    const uint8_t* fpc_data_bits
    int fpc_pattern(uint32_t word) noexcept
    int fpc_best_path() noexcept
    void fpc_sizes(int path, const uint8_t* data, int64_t entries, uint32_t* bits) noexcept

cdef enum:
    ENTRY = 128                 # bytes
    WORDS = 32
    LONGEST_RUN = 8
    MIN_BITS = 24             # four runs of eight zero words
    MAX_BITS = 1120            # every word raw

ORDER = 14
REFERENCE = "tests.reference.compress.ref_fpc"

#: It has no options.
OPTIONS = {}

#: Implementations of the sizes; all give the same results, and this processor has those up to `best_path()`.
PATHS = ("scalar", "avx2")


def best_path():
    """The name of the fastest path on this processor."""
    return PATHS[fpc_best_path()]


def compressed_bits(const uint8_t[::1] data not None, *, path=None):
    """Size of every entry.

    Parameters
    ----------
    data : whole entries of 128 B
    path : one of `PATHS` that this processor has; None: the fastest

    Returns
    -------
    uint32 array, bits per entry, from 24 to 1120
    """
    cdef int64_t entries = data.shape[0] // ENTRY
    cdef int path_number = fpc_best_path()
    if path is not None:
        if path not in PATHS[: path_number + 1]:
            raise BuddysimError(f"fpc: path {path!r}: expected one of {', '.join(PATHS[: path_number + 1])}")
        path_number = PATHS.index(path)
    bits = np.empty(entries, dtype=np.uint32)
    cdef uint32_t[::1] out = bits
    if entries:
        with nogil:
            fpc_sizes(path_number, &data[0], entries, &out[0])
    return bits


def compress(const uint8_t[::1] data not None):
    """Return the codes of whole entries in sequence, with zero bits up to the last byte's end."""
    return compress_entries(&CODE, data)


def decompress(const uint8_t[::1] payload not None, int64_t nbytes):
    """Return the data of a payload. A payload that `compress` cannot return is a `BuddysimError`."""
    return decompress_entries(&CODE, payload, nbytes)


cdef EntryCode CODE = EntryCode(
    name=b"fpc", min_bits=MIN_BITS, max_bits=MAX_BITS, encode=encode_entry, decode=decode_entry, setting=NULL
)


cdef void encode_entry(const uint8_t* entry, const void* setting, BitStream* stream) noexcept nogil:
    """Appends one entry: per word or run of zero words its prefix and data."""
    cdef uint32_t words[WORDS]
    cdef uint32_t word
    cdef int i = 0, run, pattern
    memcpy(words, entry, ENTRY)
    while i < WORDS:
        run = 0
        while i + run < WORDS and run < LONGEST_RUN and words[i + run] == 0:
            run += 1
        if run:
            put_bits(stream, FPC_ZEROS, 3)
            put_bits(stream, run - 1, 3)
            i += run
            continue
        word = words[i]
        pattern = fpc_pattern(word)
        if pattern == FPC_LOW_HALF_ZERO:
            word >>= 16
        elif pattern == FPC_TWO_HALVES:
            word = (word >> 8 & 0xFF00) | (word & 0xFF)
        put_bits(stream, pattern, 3)
        put_bits(stream, word, fpc_data_bits[pattern])
        i += 1


cdef bint decode_entry(BitStream* stream, const void* setting, uint8_t* entry) noexcept nogil:
    """Takes one entry from the stream; False where the stream ends early or no entry has this code."""
    cdef uint32_t words[WORDS]
    cdef int i = 0, run
    cdef int64_t pattern, data
    while i < WORDS:
        pattern = take_bits(stream, 3)
        if pattern < 0:
            return False
        data = take_bits(stream, fpc_data_bits[pattern])
        if data < 0:
            return False
        if pattern == FPC_ZEROS:
            if i + data + 1 > WORDS:
                return False
            for run in range(<int>data + 1):
                words[i + run] = 0
            i += <int>data + 1
            continue
        if pattern == FPC_SIGNED_4:
            data = (data ^ 8) - 8
        elif pattern == FPC_SIGNED_8:
            data = (data ^ 0x80) - 0x80
        elif pattern == FPC_SIGNED_16:
            data = (data ^ 0x8000) - 0x8000
        elif pattern == FPC_LOW_HALF_ZERO:
            data <<= 16
        elif pattern == FPC_TWO_HALVES:
            data = ((data >> 8 ^ 0x80) - 0x80) << 16 | (((data & 0xFF) ^ 0x80) - 0x80 & 0xFFFF)
        elif pattern == FPC_EQUAL_BYTES:
            data *= 0x01010101
        words[i] = <uint32_t>data
        i += 1
    memcpy(entry, words, ENTRY)
    return True
