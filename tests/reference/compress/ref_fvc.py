"""Reference model of `fvc`: docs/reference/compressors.md in plain Python, bits as text."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Sequence

ENTRY = 128  # bytes
WORDS = 32


def frequent(data: bytes, count: int) -> list[int]:
    """The most frequent words, the most frequent first, of equally frequent ones the smaller."""
    counts = Counter(_words(data))
    return sorted(counts, key=lambda word: (-counts[word], word))[:count]


def compressed_bits(data: bytes, *, table_words: int = 8, table: Sequence[int] = ()) -> list[int]:
    """Size of every 128 B entry in bits."""
    table = table or frequent(data, table_words)
    return [len(encode(data[at : at + ENTRY], table_words, table)) for at in range(0, len(data), ENTRY)]


def compress(data: bytes, *, table_words: int = 8, table: Sequence[int] = ()) -> bytes:
    """Return the codes of the entries in sequence; without a table as parameter, their table precedes them."""
    if not data:
        return b""
    words = table or frequent(data, table_words)
    code = "".join(encode(data[at : at + ENTRY], table_words, words) for at in range(0, len(data), ENTRY))
    padded = code + "0" * (-len(code) % 8)
    codes = bytes(int(padded[at : at + 8], 2) for at in range(0, len(padded), 8))
    unused = [0] * (table_words - len(words))
    return codes if table else struct.pack(f"<{table_words}I", *words, *unused) + codes


def decompress(payload: bytes, nbytes: int, *, table_words: int = 8, table: Sequence[int] = ()) -> bytes:
    """Return the data of a payload."""
    if not table:
        table, payload = _words(payload[: 4 * table_words]), payload[4 * table_words :]
    code = "".join(format(byte, "08b") for byte in payload)
    index_bits, words, at = _index_bits(table_words), list[int](), 0
    while 4 * len(words) < nbytes:
        bits = index_bits if code[at] == "1" else 32
        number = int(code[at + 1 : at + 1 + bits], 2)
        words.append(table[number] if code[at] == "1" else number)
        at += 1 + bits
    return struct.pack(f"<{len(words)}I", *words)


def encode(entry: bytes, table_words: int, table: Sequence[int]) -> str:
    """One 128 B entry as a text of ``0`` and ``1``."""
    width = _index_bits(table_words)
    return "".join(
        "1" + format(table.index(word), f"0{width}b") if word in table else "0" + format(word, "032b")
        for word in _words(entry)
    )


def _index_bits(table_words: int) -> int:
    return table_words.bit_length() - 1


def _words(data: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(data) // 4}I", data)
