"""Frequent-value compression (Yang et al., MICRO 2000) of 128 B entries, as docs/reference/compressors.md defines it.

`ref_fvc` is the reference model.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

import numpy as np

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.compress.bit_stream cimport BitStream, put_bits, take_bits
from buddysim.compress.entry_codes cimport EntryCode, compress_entries, decompress_entries
from buddysim.compress.frequent_words import frequent_words

cdef enum:
    ENTRY = 128                 # bytes
    WORDS = 32
    MAX_WORDS = 16             # of a table
    MISS_BITS = 33

ORDER = 16
REFERENCE = "tests.reference.compress.ref_fvc"

#: Options and their defaults. ``table_words``: 8 or 16; ``table``: the words, the most frequent first; without any, a
#: call takes those of its own data, and a payload begins with them.
OPTIONS = {"table_words": 8, "table": ()}

cdef struct Table:
    int count                   # words in use
    int index_bits
    uint32_t[MAX_WORDS] words  # beyond those in use: the first one again


def provenance():
    """The default size of the table, for results."""
    return f"the {OPTIONS['table_words']} most frequent words"


def options_from_sample(blocks, *, table_words=8):
    """Options that hold the table of some data.

    Parameters
    ----------
    blocks : the data in parts, each contiguous; a last word that isn't whole is padded with zeros
    table_words : 8 or 16

    Returns
    -------
    ``{"table_words": .., "table": ..}``
    """
    _check_table_words(table_words)
    return {"table_words": table_words, "table": frequent_words(blocks, table_words)}


def compressed_bits(const uint8_t[::1] data not None, *, table_words=8, table=()):
    """Size of every entry: 1 + log2(table_words) bits for a word of the table, 33 for another.

    Parameters
    ----------
    data : whole entries of 128 B
    table_words : 8 or 16
    table : the words; without any, the most frequent ones of `data`

    Returns
    -------
    uint32 array, bits per entry; the table isn't among them
    """
    cdef int64_t i, entries = data.shape[0] // ENTRY
    cdef Table words = _table(data, table_words, table)
    bits = np.empty(entries, dtype=np.uint32)
    cdef uint32_t[::1] out = bits
    with nogil:
        for i in range(entries):
            out[i] = WORDS * MISS_BITS - hits(&data[i * ENTRY], &words) * (MISS_BITS - 1 - words.index_bits)
    return bits


def compress(const uint8_t[::1] data not None, *, table_words=8, table=()):
    """Return the codes of whole entries in sequence; without the option ``table``, the table precedes them."""
    cdef Table words = _table(data, table_words, table)
    cdef EntryCode code = entry_code(&words)
    codes = compress_entries(&code, data)
    if len(table) or not codes:
        return codes
    head = np.zeros(table_words, "<u4")
    head[: words.count] = [words.words[slot] for slot in range(words.count)]
    return head.tobytes() + codes


def decompress(const uint8_t[::1] payload not None, int64_t nbytes, *, table_words=8, table=()):
    """Return the data of a payload. A payload that `compress` cannot return is a `BuddysimError`."""
    cdef Table words
    cdef EntryCode code
    cdef const uint8_t[::1] codes = payload
    _check_table_words(table_words)
    carried = not len(table) and nbytes > 0
    if carried:
        if len(payload) < 4 * table_words:
            raise BuddysimError(f"fvc: payload of {len(payload)} bytes: too short for a table of {table_words} words")
        words = filled(table_words, np.asarray(payload)[: 4 * table_words].view("<u4").tolist())
        codes = payload[4 * table_words :]
    else:
        words = _table(payload[:0], table_words, table)
    code = entry_code(&words)
    data = decompress_entries(&code, codes, nbytes)
    if carried and compress(np.frombuffer(data, np.uint8), table_words=table_words) != bytes(payload):
        raise BuddysimError(f"fvc: payload of {len(payload)} bytes: its table isn't that of its data (corrupt)")
    return data


def _check_table_words(table_words):
    if table_words not in (8, 16):
        raise BuddysimError(f"fvc: table_words {table_words}: expected 8 or 16")


cdef Table _table(const uint8_t[::1] data, table_words, table):
    """The table given, or that of the data."""
    _check_table_words(table_words)
    if not len(table):
        return filled(table_words, frequent_words([np.asarray(data)], table_words) if data.shape[0] else ())
    if not all(type(word) is int and 0 <= word < 2**32 for word in table):
        raise BuddysimError(f"fvc: table {shortened(table)}: expected words from 0 to {2**32 - 1}")
    if len(table) > table_words or len(set(table)) < len(table):
        raise BuddysimError(f"fvc: table of {len(table)} words: expected at most {table_words}, each once")
    return filled(table_words, table)


cdef Table filled(table_words, words):
    cdef Table table
    cdef int slot
    table.count, table.index_bits = len(words), 3 if table_words == 8 else 4
    for slot in range(MAX_WORDS):
        table.words[slot] = words[slot] if slot < table.count else words[0] if table.count else 0
    return table


cdef EntryCode entry_code(const Table* table) noexcept:
    return EntryCode(
        name=b"fvc",
        min_bits=WORDS * (1 + table.index_bits),
        max_bits=WORDS * MISS_BITS,
        encode=encode_entry,
        decode=decode_entry,
        setting=<const void*>table,
    )


cdef int hits(const uint8_t* entry, const Table* table) noexcept nogil:
    """Return the number of words of an entry that are in the table."""
    cdef uint32_t words[WORDS]
    cdef uint32_t is_in_table[WORDS]
    cdef int i, slot, slots = 1 << table.index_bits
    cdef uint32_t value, total = 0
    memcpy(words, entry, ENTRY)
    for i in range(WORDS):
        is_in_table[i] = 0
    for slot in range(slots):
        value = table.words[slot]
        for i in range(WORDS):
            is_in_table[i] |= words[i] == value
    for i in range(WORDS):
        total += is_in_table[i]
    return <int>total


cdef void encode_entry(const uint8_t* entry, const void* setting, BitStream* stream) noexcept nogil:
    """Appends one entry: per word a one and its index in the table, or a zero and the word."""
    cdef const Table* table = <const Table*>setting
    cdef uint32_t words[WORDS]
    cdef int i, slot
    memcpy(words, entry, ENTRY)
    for i in range(WORDS):
        slot = 0
        while slot < table.count and table.words[slot] != words[i]:
            slot += 1
        if slot < table.count:
            put_bits(stream, 1, 1)
            put_bits(stream, slot, table.index_bits)
        else:
            put_bits(stream, 0, 1)
            put_bits(stream, words[i], 32)


cdef bint decode_entry(BitStream* stream, const void* setting, uint8_t* entry) noexcept nogil:
    """Takes one entry from the stream; False where the stream ends early or no entry has this code."""
    cdef const Table* table = <const Table*>setting
    cdef uint32_t words[WORDS]
    cdef int64_t hit, value
    cdef int i
    for i in range(WORDS):
        hit = take_bits(stream, 1)
        value = take_bits(stream, table.index_bits if hit == 1 else 32)
        if hit < 0 or value < 0 or hit and value >= table.count:
            return False
        words[i] = table.words[value] if hit else <uint32_t>value
    memcpy(entry, words, ENTRY)
    return True
