"""Reference model of `fpc`: the table of docs/reference/compressors.md in plain Python, bits as text."""

from __future__ import annotations

import struct

from tests.reference.compress.ref_streams import entries_of, packed, unpacked

WORDS = 32
LONGEST_RUN = 8


def compressed_bits(data: bytes) -> list[int]:
    """Size of every 128 B entry in bits."""
    return [len(encode(entry)) for entry in entries_of(data)]


def compress(data: bytes) -> bytes:
    """Return the codes of the entries in sequence, zero bits up to the last byte's end."""
    return packed([encode(entry) for entry in entries_of(data)])


def decompress(payload: bytes, nbytes: int) -> bytes:
    """Return the data of a payload."""
    return unpacked(payload, nbytes, decode)


def encode(entry: bytes) -> str:
    """One 128 B entry as a text of ``0`` and ``1``."""
    words = struct.unpack(f"<{WORDS}i", entry)
    code, at = "", 0
    while at < WORDS:
        run = 0
        while at + run < WORDS and run < LONGEST_RUN and words[at + run] == 0:
            run += 1
        code += "000" + _binary(run - 1, 3) if run else min(patterns(words[at]), key=len)
        at += max(run, 1)
    return code


def patterns(word: int) -> list[str]:
    """The codes of all patterns that a signed word matches, in the order of the table."""
    high, low = word >> 16, _signed(word & 0xFFFF, 16)
    matches = {
        "001" + _binary(word, 4): _fits(word, 4),
        "010" + _binary(word, 8): _fits(word, 8),
        "011" + _binary(word, 16): _fits(word, 16),
        "100" + _binary(high, 16): low == 0,
        "101" + _binary(high, 8) + _binary(low, 8): _fits(high, 8) and _fits(low, 8),
        "110" + _binary(word, 8): len({*struct.pack("<i", word)}) == 1,
        "111" + _binary(word, 32): True,
    }
    return [code for code, matched in matches.items() if matched]


def decode(code: str, at: int = 0) -> tuple[bytes, int]:
    """The entry whose code begins there, and where it ends."""

    def take(count: int) -> int:
        nonlocal at
        at += count
        return int(code[at - count : at], 2)

    words: list[int] = []
    while len(words) < WORDS:
        match take(3):
            case 0b000:
                words += [0] * (take(3) + 1)
            case 0b001:
                words.append(_signed(take(4), 4))
            case 0b010:
                words.append(_signed(take(8), 8))
            case 0b011:
                words.append(_signed(take(16), 16))
            case 0b100:
                words.append(take(16) << 16)
            case 0b101:
                high = _signed(take(8), 8)
                words.append(high << 16 | _signed(take(8), 8) & 0xFFFF)
            case 0b110:
                words.append(take(8) * 0x01010101)
            case _:
                words.append(take(32))
    return struct.pack(f"<{WORDS}I", *(word & 0xFFFFFFFF for word in words)), at


def _fits(value: int, bits: int) -> bool:
    half = 1 << (bits - 1)
    return -half <= value < half


def _binary(value: int, bits: int) -> str:
    """The low bits of a number, the highest first."""
    return format(value & (2**bits - 1), f"0{bits}b")


def _signed(value: int, bits: int) -> int:
    return value - (value >> (bits - 1) << bits)
