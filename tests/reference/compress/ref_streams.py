"""Codes of 128 B entries as one stream of bits: shared by the reference models that write bits as text."""

from __future__ import annotations

from collections.abc import Callable

ENTRY = 128  # bytes


def entries_of(data: bytes) -> list[bytes]:
    """The 128 B entries, in their order."""
    return [data[first : first + ENTRY] for first in range(0, len(data), ENTRY)]


def packed(codes: list[str]) -> bytes:
    """Return the codes in sequence, high bit first, zero bits up to the last byte's end."""
    code = "".join(codes)
    padded = code + "0" * (-len(code) % 8)
    return bytes(int(padded[at : at + 8], 2) for at in range(0, len(padded), 8))


def unpacked(payload: bytes, nbytes: int, decode: Callable[[str, int], tuple[bytes, int]]) -> bytes:
    """Return the entries of `packed` codes; `decode` returns the entry whose code begins at a bit, and its end."""
    code = "".join(format(byte, "08b") for byte in payload)
    data, at = b"", 0
    while len(data) < nbytes:
        entry, at = decode(code, at)
        data += entry
    return data
