"""C-Pack (Chen et al., IEEE TVLSI 2010) of 128 B entries, as docs/reference/compressors.md defines it.

`ref_cpack` is the reference model.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

import numpy as np

from buddysim.compress.bit_stream cimport BitStream, put_bits, take_bits
from buddysim.compress.entry_codes cimport EntryCode, compress_entries, decompress_entries

cdef enum:
    ENTRY = 128                 # bytes
    WORDS = 32
    SLOTS = 16                  # of the dictionary
    MIN_BITS = 64             # zero words alone
    MAX_BITS = 1088            # every word new

cdef enum Pattern:
    # A letter per byte, the highest first: zero, matching the dictionary, any.
    ZZZZ
    XXXX
    MMMM
    MMXX
    ZZZX
    MMMX

ORDER = 18
REFERENCE = "tests.reference.compress.ref_cpack"

#: It has no options.
OPTIONS = {}

cdef struct Dictionary:
    uint32_t[SLOTS] words
    int count                   # slots in use
    int next                    # the slot that is written next


def compressed_bits(const uint8_t[::1] data not None):
    """Size of every entry.

    Parameters
    ----------
    data : whole entries of 128 B

    Returns
    -------
    uint32 array, bits per entry, from 64 to 1088
    """
    cdef int64_t i, entries = data.shape[0] // ENTRY
    bits = np.empty(entries, dtype=np.uint32)
    cdef uint32_t[::1] out = bits
    with nogil:
        for i in range(entries):
            out[i] = entry_bits(&data[i * ENTRY])
    return bits


def compress(const uint8_t[::1] data not None):
    """Return the codes of whole entries in sequence, with zero bits up to the last byte's end."""
    return compress_entries(&CODE, data)


def decompress(const uint8_t[::1] payload not None, int64_t nbytes):
    """Return the data of a payload. A payload that `compress` cannot return is a `BuddysimError`."""
    return decompress_entries(&CODE, payload, nbytes)


cdef EntryCode CODE = EntryCode(
    name=b"cpack", min_bits=MIN_BITS, max_bits=MAX_BITS, encode=encode_entry, decode=decode_entry, setting=NULL
)


cdef inline Pattern pattern_of(const Dictionary* known, uint32_t word) noexcept nogil:
    """The first pattern that a word matches."""
    cdef uint32_t least = 0xFFFFFFFF, differs
    cdef int slot
    if word == 0:
        return ZZZZ
    if word < 1 << 8:
        return ZZZX
    for slot in range(known.count):
        differs = known.words[slot] ^ word
        least = differs if differs < least else least
    if known.count == 0 or least >= 1 << 16:
        return XXXX
    return MMMM if least == 0 else MMMX if least < 1 << 8 else MMXX


cdef inline void learn(Dictionary* known, uint32_t word) noexcept nogil:
    """Puts a word into the dictionary, in place of the oldest where it is full."""
    known.words[known.next] = word
    known.next = (known.next + 1) % SLOTS
    known.count += known.count < SLOTS


cdef uint32_t entry_bits(const uint8_t* entry) noexcept nogil:
    cdef uint32_t words[WORDS]
    cdef Dictionary known
    cdef uint32_t bits = 0
    cdef int i
    cdef Pattern pattern
    known.count = known.next = 0
    memcpy(words, entry, ENTRY)
    for i in range(WORDS):
        pattern = pattern_of(&known, words[i])
        if pattern == ZZZZ:
            bits += 2
        elif pattern == ZZZX:
            bits += 12
        elif pattern == MMMM:
            bits += 6
        else:
            bits += 34 if pattern == XXXX else 16 if pattern == MMMX else 24
            learn(&known, words[i])
    return bits


cdef int slot_of(const Dictionary* known, uint32_t word, int shift) noexcept nogil:
    """The lowest slot whose word matches one that has a match, the lowest `shift` bits apart."""
    cdef int slot = 0
    while (known.words[slot] ^ word) >> shift:
        slot += 1
    return slot


cdef void encode_entry(const uint8_t* entry, const void* setting, BitStream* stream) noexcept nogil:
    """Appends one entry: per word its pattern, slot and remaining bytes."""
    cdef uint32_t words[WORDS]
    cdef Dictionary known
    cdef uint32_t word
    cdef int i
    cdef Pattern pattern
    known.count = known.next = 0
    memcpy(words, entry, ENTRY)
    for i in range(WORDS):
        word = words[i]
        pattern = pattern_of(&known, word)
        if pattern == ZZZZ:
            put_bits(stream, 0b00, 2)
        elif pattern == XXXX:
            put_bits(stream, 0b01, 2)
            put_bits(stream, word, 32)
        elif pattern == MMMM:
            put_bits(stream, 0b10, 2)
            put_bits(stream, slot_of(&known, word, 0), 4)
        elif pattern == MMXX:
            put_bits(stream, 0b1100, 4)
            put_bits(stream, slot_of(&known, word, 16), 4)
            put_bits(stream, word, 16)
        elif pattern == ZZZX:
            put_bits(stream, 0b1101, 4)
            put_bits(stream, word, 8)
        else:
            put_bits(stream, 0b1110, 4)
            put_bits(stream, slot_of(&known, word, 8), 4)
            put_bits(stream, word, 8)
        if pattern == XXXX or pattern == MMXX or pattern == MMMX:
            learn(&known, word)


cdef bint decode_entry(BitStream* stream, const void* setting, uint8_t* entry) noexcept nogil:
    """Takes one entry from the stream; False where the stream ends early or no entry has this code."""
    cdef uint32_t words[WORDS]
    cdef Dictionary known
    cdef int64_t code, slot = 0, rest = 0
    cdef int i, low
    known.count = known.next = 0
    for i in range(WORDS):
        code = take_bits(stream, 2)
        if code == 0b11:
            code = 0b1100 | take_bits(stream, 2)
        if code < 0 or code == 0b1111:
            return False
        low = 32 if code == 0b01 else 16 if code == 0b1100 else 8 if code == 0b1101 or code == 0b1110 else 0
        if code == 0b10 or code == 0b1100 or code == 0b1110:
            slot = take_bits(stream, 4)
            if slot < 0 or slot >= known.count:
                return False
            words[i] = known.words[slot] >> low << low
        else:
            words[i] = 0
        if low:
            rest = take_bits(stream, low)
            if rest < 0:
                return False
            words[i] |= <uint32_t>rest
        if code == 0b01 or code == 0b1100 or code == 0b1110:
            learn(&known, words[i])
    memcpy(entry, words, ENTRY)
    return True
