"""Reference model of `csr`: docs/reference/compressors.md in plain Python."""

from __future__ import annotations

import struct

WORD = 4
POINTER = 4
INDEX = {1: "B", 4: "I"}


def compress(
    data: bytes, *, index_bytes: int = 4, columns: int = 0, window: int = 4096, raw_fallback: bool = False
) -> bytes:
    """Return the windows' codes in sequence, after their flags if there are any."""
    windows = _windows(data, window)
    codes = [_window_code(part, index_bytes, columns or _columns(index_bytes, window)) for part in windows]
    if not raw_fallback:
        return b"".join(codes)
    raw = [len(code) > len(part) for code, part in zip(codes, windows, strict=True)]
    flags = sum(flag << i for i, flag in enumerate(raw)).to_bytes((len(raw) + 7) // 8, "little")
    return flags + b"".join(part if flag else code for code, part, flag in zip(codes, windows, raw, strict=True))


def compressed_bits(
    data: bytes, *, index_bytes: int = 4, columns: int = 0, window: int = 4096, raw_fallback: bool = False
) -> list[int]:
    """Size of every window in bits, the flag included."""
    sizes = []
    for part in _windows(data, window):
        size = len(_window_code(part, index_bytes, columns or _columns(index_bytes, window)))
        sizes.append(8 * min(size, len(part)) + 1 if raw_fallback else 8 * size)
    return sizes


def decompress(
    payload: bytes,
    nbytes: int,
    *,
    index_bytes: int = 4,
    columns: int = 0,
    window: int = 4096,
    raw_fallback: bool = False,
) -> bytes:
    """Return the data of a payload."""
    columns = columns or _columns(index_bytes, window)
    lengths = [min(window, nbytes - first) for first in range(0, nbytes, window)]
    at = (len(lengths) + 7) // 8 if raw_fallback else 0
    flags = int.from_bytes(payload[:at], "little")
    data = b""
    for i, length in enumerate(lengths):
        if flags >> i & 1:
            data += payload[at : at + length]
            at += length
            continue
        count = length // WORD
        ends = struct.unpack_from(f"<{-(-count // columns)}I", payload, at)
        at += POINTER * len(ends)
        indices = struct.unpack_from(f"<{ends[-1]}{INDEX[index_bytes]}", payload, at)
        at += index_bytes * len(indices)
        values = struct.unpack_from(f"<{ends[-1]}I", payload, at)
        at += WORD * len(values)
        words = [0] * count
        for row, (first, end) in enumerate(zip((0, *ends), ends, strict=False)):
            for column, value in zip(indices[first:end], values[first:end], strict=True):
                words[row * columns + column] = value
        data += struct.pack(f"<{count}I", *words)
    return data


def _columns(index_bytes: int, window: int) -> int:
    return 256 if index_bytes == 1 else window // WORD


def _windows(data: bytes, window: int) -> list[bytes]:
    return [data[first : first + window] for first in range(0, len(data), window)]


def _window_code(part: bytes, index_bytes: int, columns: int) -> bytes:
    words = struct.unpack(f"<{len(part) // WORD}I", part)
    ends, indices, values = b"", b"", b""
    for first in range(0, len(words), columns):
        for column, word in enumerate(words[first : first + columns]):
            if word:
                indices += column.to_bytes(index_bytes, "little")
                values += struct.pack("<I", word)
        ends += struct.pack("<I", len(values) // WORD)
    return ends + indices + values
