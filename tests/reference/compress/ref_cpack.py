"""Reference model of `cpack`: the table of docs/reference/compressors.md in plain Python, bits as text."""

from __future__ import annotations

import struct

from tests.reference.compress.ref_streams import entries_of, packed, unpacked

WORDS = 32
SLOTS = 16


def compressed_bits(data: bytes) -> list[int]:
    """Size of every 128 B entry in bits."""
    return [len(encode(entry)) for entry in entries_of(data)]


def compress(data: bytes) -> bytes:
    """Return the codes of the entries in sequence, zero bits up to the last byte's end."""
    return packed([encode(entry) for entry in entries_of(data)])


def decompress(payload: bytes, nbytes: int) -> bytes:
    """Return the data of a payload."""
    return unpacked(payload, nbytes, decode)


class Dictionary:
    """The words pushed last, each in its slot."""

    def __init__(self) -> None:
        self.slots: list[str] = []
        self.pushed = 0

    def push(self, word: str) -> None:
        if len(self.slots) < SLOTS:
            self.slots.append(word)
        else:
            self.slots[self.pushed % SLOTS] = word
        self.pushed += 1

    def match(self, word: str, digits: int) -> int | None:
        """The lowest slot whose highest hexadecimal digits are a word's."""
        return next((slot for slot, known in enumerate(self.slots) if known[:digits] == word[:digits]), None)


def encode(entry: bytes) -> str:
    """One 128 B entry as a text of ``0`` and ``1``."""
    code, known = "", Dictionary()
    for number in struct.unpack(f"<{WORDS}I", entry):
        word = format(number, "08x")
        bits = _static(number) or _matching(known, word, number)
        if bits:
            code += bits
        else:
            code += "01" + format(number, "032b")
        if not bits or bits.startswith(("1100", "1110")):
            known.push(word)
    return code


def _static(number: int) -> str | None:
    if number == 0:
        return "00"
    return "1101" + format(number, "08b") if number < 256 else None


def _matching(known: Dictionary, word: str, number: int) -> str | None:
    for digits, prefix in ((8, "10"), (6, "1110"), (4, "1100")):
        slot = known.match(word, digits)
        if slot is not None:
            low = 32 - 4 * digits
            return prefix + format(slot, "04b") + (format(number % 2**low, f"0{low}b") if low else "")
    return None


def decode(code: str, at: int = 0) -> tuple[bytes, int]:
    """The entry whose code begins there, and where it ends."""

    def take(count: int) -> str:
        nonlocal at
        at += count
        return code[at - count : at]

    words, known = list[int](), Dictionary()
    while len(words) < WORDS:
        prefix = take(2)
        prefix += take(2) if prefix == "11" else ""
        high = known.slots[int(take(4), 2)] if prefix in ("10", "1100", "1110") else "00000000"
        low = {"00": 0, "01": 32, "10": 0, "1100": 16, "1101": 8, "1110": 8}[prefix]
        word = high[: 8 - low // 4] + (format(int(take(low), 2), f"0{low // 4}x") if low else "")
        words.append(int(word, 16))
        if prefix in ("01", "1100", "1110"):
            known.push(word)
    return struct.pack(f"<{WORDS}I", *words), at
