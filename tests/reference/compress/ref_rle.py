"""Reference model of `rle`: docs/reference/compressors.md in plain Python."""

from __future__ import annotations

from itertools import groupby

WORD = 4
LONGEST = 255


def compress(data: bytes, *, kind: str = "zero", window: int = 4096, raw_fallback: bool = False) -> bytes:
    """Return the windows' codes in sequence, after their flags if there are any."""
    windows = _windows(data, window)
    codes = [_window_code(part, kind) for part in windows]
    if not raw_fallback:
        return b"".join(codes)
    raw = [len(code) > len(part) for code, part in zip(codes, windows, strict=True)]
    flags = sum(flag << i for i, flag in enumerate(raw)).to_bytes((len(raw) + 7) // 8, "little")
    return flags + b"".join(part if flag else code for code, part, flag in zip(codes, windows, raw, strict=True))


def compressed_bits(data: bytes, *, kind: str = "zero", window: int = 4096, raw_fallback: bool = False) -> list[int]:
    """Size of every window in bits, the flag included."""
    sizes = []
    for part in _windows(data, window):
        size = len(_window_code(part, kind))
        sizes.append(8 * min(size, len(part)) + 1 if raw_fallback else 8 * size)
    return sizes


def decompress(
    payload: bytes, nbytes: int, *, kind: str = "zero", window: int = 4096, raw_fallback: bool = False
) -> bytes:
    """Return the data of a payload."""
    lengths = [min(window, nbytes - first) for first in range(0, nbytes, window)]
    at = (len(lengths) + 7) // 8 if raw_fallback else 0
    flags = int.from_bytes(payload[:at], "little")
    data = b""
    for i, length in enumerate(lengths):
        end = len(data) + length
        if flags >> i & 1:
            data += payload[at : at + length]
            at += length
        while len(data) < end:
            if kind == "zero":
                zeros, others = payload[at], payload[at + 1]
                data += bytes(WORD * zeros) + payload[at + 2 : at + 2 + WORD * others]
                at += 2 + WORD * others
            else:
                data += payload[at : at + WORD] * payload[at + WORD]
                at += WORD + 1
    return data


def _windows(data: bytes, window: int) -> list[bytes]:
    return [data[first : first + window] for first in range(0, len(data), window)]


def _window_code(part: bytes, kind: str) -> bytes:
    words = [part[at : at + WORD] for at in range(0, len(part), WORD)]
    if kind == "value":
        runs = [part for word, same in groupby(words) for part in _parts(word, len(list(same)))]
        return b"".join(word + bytes([count]) for word, count in runs)
    code, zeros = b"", 0
    for is_zero, group in groupby(words, key=lambda word: not any(word)):
        run = list(group)
        while len(run) > LONGEST:
            head, run = run[:LONGEST], run[LONGEST:]
            code += bytes([LONGEST, 0]) if is_zero else bytes([zeros, LONGEST]) + b"".join(head)
            zeros = 0
        if is_zero:
            zeros = len(run)
        else:
            code += bytes([zeros, len(run)]) + b"".join(run)
            zeros = 0
    return code + (bytes([zeros, 0]) if zeros else b"")


def _parts(word: bytes, count: int) -> list[tuple[bytes, int]]:
    """Divide a run into parts that a count can express."""
    return [(word, min(LONGEST, count - done)) for done in range(0, count, LONGEST)]
