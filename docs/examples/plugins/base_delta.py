"""Base-delta compression: the first word of an entry, and how far each other word is from it, in 0, 1 or 2 bytes.

Pekhimenko et al., "Base-Delta-Immediate Compression", PACT 2012, simplified: one base of 32 bits, no immediates. A code
is a byte with the width of its 31 differences, the base, and the differences; width 4 stores the words themselves.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from buddysim.base.errors import BuddysimError

OPTIONS: dict[str, object] = {}

ENTRY, OTHERS, RAW = 128, 31, 4


def compressed_bits(data: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """Size of every 128 B entry in bits."""
    return (8 * (1 + 4 + OTHERS * _widths(_words(data)))).astype(np.uint32)


def compress(data: NDArray[np.uint8]) -> bytes:
    """The codes of the entries, one after the other."""
    words, code = _words(data), []
    for entry, width in zip(words, _widths(words), strict=True):
        others = entry[1:] if width == RAW else entry[1:] - entry[0]
        low = others.view(np.uint8).reshape(OTHERS, 4)[:, :width]
        code.append(bytes([width]) + entry[:1].tobytes() + low.tobytes())
    return b"".join(code)


def decompress(payload: NDArray[np.uint8], nbytes: int) -> bytes:
    """Return the data of a payload."""
    entries, at = [], 0
    for _ in range(0, nbytes, ENTRY):
        width = int(payload[at]) if at < len(payload) else RAW + 1
        end = at + 1 + 4 + OTHERS * width
        if width not in (0, 1, 2, RAW) or end > len(payload):
            raise BuddysimError(f"base-delta: payload of {len(payload)} bytes: corrupt at byte {at}")
        base, low = payload[at + 1 : at + 5].copy().view("<u4"), np.zeros((OTHERS, 4), np.uint8)
        low[:, :width] = payload[at + 5 : end].reshape(OTHERS, width)
        if 0 < width < RAW:
            low[:, width:] = np.where(low[:, width - 1 : width] < 128, 0, 255)  # the sign
        others = low.view("<u4")[:, 0] + (0 if width == RAW else base)
        entries.append(base.tobytes() + others.astype("<u4").tobytes())
        at = end
    data = b"".join(entries)
    if compress(np.frombuffer(data, np.uint8)) != payload.tobytes():
        raise BuddysimError(f"base-delta: payload of {len(payload)} bytes: not what {nbytes} bytes compress to")
    return data


def _words(data: NDArray[np.uint8]) -> NDArray[np.uint32]:
    return data.view("<u4").reshape(-1, 1 + OTHERS)


def _widths(words: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Bytes that the differences from an entry's first word take."""
    far = (words[:, 1:] - words[:, :1]).view(np.int32)
    fit = [far == 0, far >> 7 == far >> 31, far >> 15 == far >> 31]
    return np.select([np.all(words_fit, axis=1) for words_fit in fit], (0, 1, 2), RAW)
