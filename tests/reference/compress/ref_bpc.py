"""Reference model of `bpc`: the table of docs/reference/compressors.md in plain Python, bits as text."""

from __future__ import annotations

import struct
from itertools import pairwise

from tests.reference.compress.ref_streams import entries_of, packed, unpacked

WORDS = 32
PLANES = 33
DELTAS = WORDS - 1


def compressed_bits(data: bytes, *, unsigned: bool = False) -> list[int]:
    """Size of every 128 B entry in bits."""
    return [len(encode(entry, unsigned=unsigned)) for entry in entries_of(data)]


def compress(data: bytes, *, unsigned: bool = False) -> bytes:
    """Return the codes of the entries in sequence, zero bits up to the last byte's end."""
    return packed([encode(entry, unsigned=unsigned) for entry in entries_of(data)])


def decompress(payload: bytes, nbytes: int, *, unsigned: bool = False) -> bytes:
    """Return the data of a payload; `unsigned` plays no part, since deltas are added modulo 2^32."""
    return unpacked(payload, nbytes, decode)


def encode(entry: bytes, *, unsigned: bool = False) -> str:
    """One 128 B entry as a text of ``0`` and ``1``."""
    words = struct.unpack(f"<{WORDS}{'I' if unsigned else 'i'}", entry)
    deltas = [after - before for before, after in pairwise(words)]
    dbp = [[delta >> plane & 1 for delta in deltas] for plane in range(PLANES)]
    dbx = [[a ^ b for a, b in zip(dbp[plane], dbp[plane + 1], strict=True)] for plane in range(PLANES - 1)]
    dbx.append(dbp[PLANES - 1])

    code = _base_code(words[0])
    plane = PLANES - 1
    while plane >= 0:
        run = 0
        while plane - run >= 0 and not any(dbx[plane - run]):
            run += 1
        if run >= 2:
            code += "01" + _binary(run - 2, 5)
        elif run == 1:
            code += "001"
        else:
            code += _plane_code(dbx[plane], dbp[plane])
        plane -= max(run, 1)
    return code


def decode(code: str, at: int = 0) -> tuple[bytes, int]:
    """The entry whose code begins there, and where it ends."""

    def take(count: int) -> str:
        nonlocal at
        at += count
        return code[at - count : at]

    if take(1) == "1":
        base = int(take(32), 2)
    else:
        bits = {"00": 0, "01": 4, "10": 8, "11": 16}[take(2)]
        base = _signed(take(bits)) if bits else 0

    above = [0] * DELTAS
    dbp: list[list[int]] = []
    while len(dbp) < PLANES:
        if take(1) == "1":
            changes = [[int(bit) for bit in reversed(take(DELTAS))]]
        elif take(1) == "1":
            changes = [[0] * DELTAS] * (int(take(5), 2) + 2)
        elif take(1) == "1":
            changes = [[0] * DELTAS]
        else:
            kind = take(2)
            if kind == "00":
                changes = [[1] * DELTAS]
            elif kind == "01":
                changes = [above]
            else:
                first = int(take(5), 2)
                ones = (first, first + 1) if kind == "10" else (first,)
                changes = [[int(r in ones) for r in range(DELTAS)]]
        for change in changes:
            above = [a ^ b for a, b in zip(above, change, strict=True)]
            dbp.append(above)

    words = [base]
    for r in range(DELTAS):
        delta = _signed("".join(str(plane[r]) for plane in dbp))
        words.append(words[-1] + delta)
    return struct.pack(f"<{WORDS}I", *(word & 0xFFFFFFFF for word in words)), at


def _base_code(base: int) -> str:
    if base == 0:
        return "000"
    for prefix, bits in (("001", 4), ("010", 8), ("011", 16)):
        if -(2 ** (bits - 1)) <= base < 2 ** (bits - 1):
            return prefix + _binary(base, bits)
    return "1" + _binary(base, 32)


def _plane_code(dbx: list[int], dbp: list[int]) -> str:
    ones = [r for r, bit in enumerate(dbx) if bit]
    if len(ones) == DELTAS:
        return "00000"
    if not any(dbp):
        return "00001"
    if len(ones) == 2 and ones[1] == ones[0] + 1:
        return "00010" + _binary(ones[0], 5)
    if len(ones) == 1:
        return "00011" + _binary(ones[0], 5)
    return "1" + "".join(str(bit) for bit in reversed(dbx))


def _binary(value: int, bits: int) -> str:
    """The low bits of a number, the highest first."""
    return format(value & (2**bits - 1), f"0{bits}b")


def _signed(bits: str) -> int:
    """A two's complement number, the highest bit first."""
    return int(bits, 2) - (int(bits[0]) << len(bits))
