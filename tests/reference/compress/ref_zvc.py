"""Reference model of `zvc`: docs/reference/compressors.md in plain Python, bits as text in the order of the stream."""

from __future__ import annotations

GROUP = 32


def encode(data: bytes, *, word_bits: int = 32, window: int = 128, raw_fallback: bool = False) -> str:
    """All windows of `data` as a text of ``0`` and ``1``."""
    windows = [data[first : first + window] for first in range(0, len(data), window)]
    codes = [_window_code(part, word_bits // 8) for part in windows]
    if not raw_fallback:
        return "".join(codes)
    flags = ["1" if len(code) > 8 * len(part) else "0" for code, part in zip(codes, windows, strict=True)]
    bodies = [_bits(part) if flag == "1" else code for code, part, flag in zip(codes, windows, flags, strict=True)]
    return "".join(flags + bodies)


def compress(data: bytes, *, word_bits: int = 32, window: int = 128, raw_fallback: bool = False) -> bytes:
    """Return the codes as bytes, zero bits up to the last byte's end."""
    return _bytes(encode(data, word_bits=word_bits, window=window, raw_fallback=raw_fallback))


def compressed_bits(data: bytes, *, word_bits: int = 32, window: int = 128, raw_fallback: bool = False) -> list[int]:
    """Size of every window in bits, the flag included."""
    return [
        len(encode(data[first : first + window], word_bits=word_bits, window=window, raw_fallback=raw_fallback))
        for first in range(0, len(data), window)
    ]


def decompress(
    payload: bytes, nbytes: int, *, word_bits: int = 32, window: int = 128, raw_fallback: bool = False
) -> bytes:
    """Return the data of a payload."""
    code = _bits(payload)
    lengths = [min(window, nbytes - first) for first in range(0, nbytes, window)]
    flags = code[: len(lengths)] if raw_fallback else "0" * len(lengths)
    at = len(lengths) if raw_fallback else 0
    data = b""
    for length, flag in zip(lengths, flags, strict=True):
        if flag == "1":
            data += _bytes(code[at : at + 8 * length])
            at += 8 * length
            continue
        words = length // (word_bits // 8)
        for first in range(0, words, GROUP):
            mask = code[at : at + min(GROUP, words - first)]
            at += len(mask)
            for is_nonzero in mask:
                data += _bytes(code[at : at + word_bits]) if is_nonzero == "1" else bytes(word_bits // 8)
                at += word_bits if is_nonzero == "1" else 0
    return data


def _window_code(part: bytes, word_bytes: int) -> str:
    words = [part[at : at + word_bytes] for at in range(0, len(part), word_bytes)]
    code = ""
    for first in range(0, len(words), GROUP):
        group = words[first : first + GROUP]
        code += "".join("1" if any(word) else "0" for word in group)
        code += "".join(_bits(word) for word in group if any(word))
    return code


def _bits(data: bytes) -> str:
    """Bytes as bits, the lowest of a byte first."""
    return "".join(format(byte, "08b")[::-1] for byte in data)


def _bytes(bits: str) -> bytes:
    return bytes(int(bits[at : at + 8][::-1], 2) for at in range(0, len(bits), 8))
