"""Reference model of `bdi`: docs/reference/compressors.md in plain Python, bits as text."""

from __future__ import annotations

from tests.reference.compress.ref_streams import ENTRY, entries_of, packed, unpacked

ZEROS, REPEATED, RAW = "0000", "0001", "1111"
#: Bytes of the base and of a delta, by the id of the code.
BASE_DELTA = {"0010": (8, 1), "0011": (8, 2), "0100": (8, 4), "0101": (4, 1), "0110": (4, 2), "0111": (2, 1)}


def compressed_bits(data: bytes, *, count_mask: bool = False) -> list[int]:
    """Size of every 128 B entry in bits: the smallest of the codes that it fits."""
    return [min(size(code, count_mask) for code in codes_of(entry)) for entry in entries_of(data)]


def compress(data: bytes, *, count_mask: bool = False) -> bytes:
    """Return the codes of the entries in sequence, zero bits up to the last byte's end; the option is not used."""
    return packed([encode(entry) for entry in entries_of(data)])


def decompress(payload: bytes, nbytes: int, *, count_mask: bool = False) -> bytes:
    """Return the data of a payload."""
    return unpacked(payload, nbytes, decode)


def codes_of(entry: bytes) -> list[str]:
    """The ids of all codes that an entry fits."""
    fitting = [RAW]
    if not any(entry):
        fitting.append(ZEROS)
    if entry == entry[:8] * 16:
        fitting.append(REPEATED)
    for code, (k, d) in BASE_DELTA.items():
        base = base_of(entry, k, d)
        if all(is_small(value, d) or is_small(wrapped(value - base, k), d) for value in elements(entry, k)):
            fitting.append(code)
    return fitting


def size(code: str, whole: bool) -> int:
    """Bits of a code, with its id and its mask if `whole`."""
    if code in BASE_DELTA:
        k, d = BASE_DELTA[code]
        return 8 * (k + ENTRY // k * d) + (4 + ENTRY // k if whole else 0)
    return 8 * {ZEROS: 1, REPEATED: 8, RAW: ENTRY}[code] + (4 if whole else 0)


def encode(entry: bytes) -> str:
    """One 128 B entry as a text of ``0`` and ``1``."""
    # Of two with the same size (B2D1, B8D4) the one with fewer bytes.
    code = min(codes_of(entry), key=lambda code: (size(code, True), size(code, False)))
    if code == ZEROS:
        return code + "0" * 8
    if code == REPEATED:
        return code + _binary(int.from_bytes(entry[:8], "little"), 8)
    if code == RAW:
        return code + "".join(_binary(byte, 1) for byte in entry)
    k, d = BASE_DELTA[code]
    base, values = base_of(entry, k, d), elements(entry, k)
    mask = "".join("0" if is_small(value, d) else "1" for value in values)
    deltas = [value if is_small(value, d) else value - base for value in values]
    return code + mask + _binary(base, k) + "".join(_binary(delta, d) for delta in deltas)


def decode(text: str, at: int = 0) -> tuple[bytes, int]:
    """The entry whose code begins there, and where it ends."""

    def take(count: int) -> str:
        nonlocal at
        at += count
        return text[at - count : at]

    code = take(4)
    if code == ZEROS:
        take(8)
        return bytes(ENTRY), at
    if code == REPEATED:
        return int(take(64), 2).to_bytes(8, "little") * 16, at
    if code == RAW:
        return bytes(int(take(8), 2) for _ in range(ENTRY)), at
    k, d = BASE_DELTA[code]
    mask, base, entry = take(ENTRY // k), int(take(8 * k), 2), b""
    for relative in mask:
        value = wrapped(int(take(8 * d), 2), d) + (base if relative == "1" else 0)
        entry += (value % 2 ** (8 * k)).to_bytes(k, "little")
    return entry, at


def elements(entry: bytes, k: int) -> list[int]:
    """Signed little-endian numbers of `k` bytes."""
    return [int.from_bytes(entry[at : at + k], "little", signed=True) for at in range(0, ENTRY, k)]


def base_of(entry: bytes, k: int, d: int) -> int:
    """The first element that isn't small itself; 0 where all are."""
    return next((value for value in elements(entry, k) if not is_small(value, d)), 0)


def is_small(value: int, d: int) -> bool:
    """Whether a value is a signed number of `d` bytes."""
    half = 1 << (8 * d - 1)
    return -half <= value < half


def wrapped(value: int, k: int) -> int:
    """A value modulo 2^(8k), as a signed number."""
    half = 1 << (8 * k - 1)
    return (value + half) % (2 * half) - half


def _binary(value: int, nbytes: int) -> str:
    """The low bytes of a number, the highest bit first."""
    return format(value % 2 ** (8 * nbytes), f"0{8 * nbytes}b")
