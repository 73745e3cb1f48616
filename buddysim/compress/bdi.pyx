"""Base-delta-immediate compression (Pekhimenko et al., PACT 2012) of 128 B entries, as docs/reference/compressors.md defines it.

`ref_bdi` is the reference model.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

import numpy as np

from buddysim.base.errors import BuddysimError
from buddysim.compress.bit_stream cimport BitStream, put_bits, take_bits
from buddysim.compress.entry_codes cimport EntryCode, compress_entries, decompress_entries

cdef extern from "bdi_sizes.h" nogil:
    ctypedef struct bdi_code:
        int id
        int base_bytes
        int delta_bytes
        int whole_bits
    const int BDI_ZEROS
    const int BDI_REPEATED
    const int BDI_CODES
    const bdi_code* bdi_codes
    const uint8_t* bdi_by_whole_bits
    int bdi_best_path() noexcept
    int bdi_choice(const uint8_t* entry, const uint8_t* order) noexcept
    void bdi_sizes(int path, const uint8_t* data, int64_t entries, int whole, uint32_t* bits) noexcept

cdef enum:
    ENTRY = 128                 # bytes
    MIN_BITS = 12             # a zero entry
    MAX_BITS = 1028            # a raw one

ORDER = 12
REFERENCE = "tests.reference.compress.ref_bdi"

#: Options and their defaults. ``count_mask``: sizes have the 4-bit id of the code and a mask bit per element, too.
OPTIONS = {"count_mask": False}
#: A code always has them: it couldn't be decoded otherwise.
PAYLOAD_OPTIONS = {"count_mask": True}

#: Implementations of the sizes; all give the same results, and this processor has those up to `best_path()`.
PATHS = ("scalar", "avx2")


def best_path():
    """The name of the fastest path on this processor."""
    return PATHS[bdi_best_path()]


def compressed_bits(const uint8_t[::1] data not None, *, bint count_mask=False, path=None):
    """Size of every entry: the smallest of the codes that it fits.

    Parameters
    ----------
    data : whole entries of 128 B
    count_mask : sizes have the 4-bit id of the code and a mask bit per element, too
    path : one of `PATHS` that this processor has; None: the fastest

    Returns
    -------
    uint32 array, bits per entry, from 8 to 1024 (with `count_mask` 12 to 1028)
    """
    cdef int64_t entries = data.shape[0] // ENTRY
    cdef int path_number = bdi_best_path()
    if path is not None:
        if path not in PATHS[: path_number + 1]:
            raise BuddysimError(f"bdi: path {path!r}: expected one of {', '.join(PATHS[: path_number + 1])}")
        path_number = PATHS.index(path)
    bits = np.empty(entries, dtype=np.uint32)
    cdef uint32_t[::1] out = bits
    if entries:
        with nogil:
            bdi_sizes(path_number, &data[0], entries, count_mask, &out[0])
    return bits


def compress(const uint8_t[::1] data not None, *, bint count_mask=False):
    """Return the codes of whole entries in sequence, zero bits up to the last byte's end; the option is not used."""
    return compress_entries(&CODE, data)


def decompress(const uint8_t[::1] payload not None, int64_t nbytes, *, bint count_mask=False):
    """Return the data of a payload. A payload that `compress` cannot return is a `BuddysimError`."""
    return decompress_entries(&CODE, payload, nbytes)


cdef EntryCode CODE = EntryCode(
    name=b"bdi", min_bits=MIN_BITS, max_bits=MAX_BITS, encode=encode_entry, decode=decode_entry, setting=NULL
)


cdef inline uint64_t element_at(const uint8_t* entry, int i, int nbytes) noexcept nogil:
    cdef uint64_t element = 0
    memcpy(&element, entry + i * nbytes, nbytes)
    return element


cdef inline bint fits(uint64_t number, int base_bytes, int delta_bytes) noexcept nogil:
    """Whether the low `base_bytes` of a number are a signed number of `delta_bytes`."""
    cdef uint64_t half = <uint64_t>1 << (8 * delta_bytes - 1)
    return (number + half) << (64 - 8 * base_bytes) >> (64 - 8 * base_bytes) < 2 * half


cdef void put_number(BitStream* stream, uint64_t number, int nbytes) noexcept nogil:
    """Appends the low bytes of a number, the highest bit first."""
    if nbytes == 8:
        put_bits(stream, <uint32_t>(number >> 32), 32)
        nbytes = 4
    put_bits(stream, <uint32_t>number, 8 * nbytes)


cdef uint64_t take_number(BitStream* stream, int nbytes) noexcept nogil:
    """The next number of a stream that has it."""
    cdef uint64_t number = 0
    if nbytes == 8:
        number = <uint64_t>take_bits(stream, 32) << 32
        nbytes = 4
    return number | <uint64_t>take_bits(stream, 8 * nbytes)


cdef void encode_entry(const uint8_t* entry, const void* setting, BitStream* stream) noexcept nogil:
    """Appends one entry: the id; then mask, base and deltas, or the value, or all bytes."""
    cdef int i, choice = bdi_choice(entry, bdi_by_whole_bits)
    cdef int k = bdi_codes[choice].base_bytes, d = bdi_codes[choice].delta_bytes
    cdef uint64_t base = 0, element
    cdef bint has_base = False
    put_bits(stream, bdi_codes[choice].id, 4)
    if choice == BDI_ZEROS:
        put_bits(stream, 0, 8)
    elif choice == BDI_REPEATED:
        put_number(stream, element_at(entry, 0, 8), 8)
    elif k == 0:
        for i in range(ENTRY):
            put_bits(stream, entry[i], 8)
    else:
        for i in range(ENTRY // k):
            element = element_at(entry, i, k)
            if fits(element, k, d):
                put_bits(stream, 0, 1)
                continue
            put_bits(stream, 1, 1)
            if not has_base:
                base, has_base = element, True
        put_number(stream, base, k)
        for i in range(ENTRY // k):
            element = element_at(entry, i, k)
            put_number(stream, element if fits(element, k, d) else element - base, d)


cdef bint decode_entry(BitStream* stream, const void* setting, uint8_t* entry) noexcept nogil:
    """Takes one entry from the stream; False where the stream ends early or no entry has this code."""
    cdef int64_t id = take_bits(stream, 4)
    cdef int i, k, d, choice = 0
    cdef uint64_t number, base, half
    cdef int64_t masks_at
    while choice < BDI_CODES and bdi_codes[choice].id != id:
        choice += 1
    if choice == BDI_CODES:
        return False
    k, d = bdi_codes[choice].base_bytes, bdi_codes[choice].delta_bytes
    if stream.position + bdi_codes[choice].whole_bits - 4 > stream.end:
        return False
    if choice == BDI_ZEROS:
        memset(entry, 0, ENTRY)
        return take_bits(stream, 8) == 0
    if choice == BDI_REPEATED:
        number = take_number(stream, 8)
        for i in range(ENTRY // 8):
            memcpy(entry + 8 * i, &number, 8)
        return True
    if k == 0:
        for i in range(ENTRY):
            entry[i] = <uint8_t>take_bits(stream, 8)
        return True
    masks_at = stream.position
    stream.position += ENTRY // k
    base, half = take_number(stream, k), <uint64_t>1 << (8 * d - 1)
    for i in range(ENTRY // k):
        number = (take_number(stream, d) ^ half) - half
        if stream.bytes[(masks_at + i) >> 3] >> (7 - ((masks_at + i) & 7)) & 1:
            number += base
        memcpy(entry + i * k, &number, k)
    return True
