"""Windows: the pieces of a tensor that are compressed independently of each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from buddysim.base.errors import BuddysimError

#: Default window of the compressors of tensors in bytes (cDMA, Sec. VII-A).
TENSOR_WINDOW = 4096
#: The longest window (cDMA studied windows up to this).
LONGEST_WINDOW = 65536


def check_window(algorithm: str, window: int, word_bytes: int) -> None:
    """Refuses a window that is no multiple of the word size, or too long."""
    if not word_bytes <= window <= LONGEST_WINDOW or window % word_bytes:
        raise BuddysimError(
            f"{algorithm}: window {window} B: expected a multiple of {word_bytes} B, at most {LONGEST_WINDOW} B"
        )


def check_length(algorithm: str, nbytes: int, word_bytes: int) -> None:
    """Refuses data that isn't made of whole words."""
    if nbytes % word_bytes:
        raise BuddysimError(f"{algorithm}: data of {nbytes} B: expected a multiple of {word_bytes} B (the word size)")


def window_count(nbytes: int, window: int) -> int:
    """Number of windows in `nbytes` bytes of data; the last one may be short."""
    return -(-nbytes // window)


def window_lengths(nbytes: int, window: int) -> NDArray[np.int64]:
    """Bytes of every window."""
    return np.minimum(window, nbytes - np.arange(0, nbytes, window, dtype=np.int64))


def bits_of(codes: Sequence[bytes], nbytes: int, window: int, raw_fallback: bool) -> NDArray[np.uint32]:
    """Size in bits of every window of `nbytes` of data with these codes, its flag included where there is one."""
    sizes = np.fromiter((len(code) for code in codes), np.int64)
    if not raw_fallback:
        return (8 * sizes).astype(np.uint32)
    return (8 * np.minimum(sizes, window_lengths(nbytes, window)) + 1).astype(np.uint32)


def joined(codes: Sequence[bytes], data: NDArray[np.uint8], window: int, raw_fallback: bool) -> bytes:
    """Return the windows' codes in sequence, padded to whole bytes; with `raw_fallback` flags precede them."""
    if not raw_fallback:
        return b"".join(codes)
    raw = np.array([len(code) for code in codes], np.int64) > window_lengths(len(data), window)
    payloads = [
        data[i * window : (i + 1) * window].tobytes() if flag else code
        for i, (code, flag) in enumerate(zip(codes, raw, strict=True))
    ]
    return np.packbits(raw, bitorder="little").tobytes() + b"".join(payloads)


def flags_of(algorithm: str, payload: NDArray[np.uint8], windows: int, raw_fallback: bool) -> NDArray[np.uint8]:
    """Return a 1 for each window that is stored raw; a flag after the last window is a `BuddysimError`."""
    if not raw_fallback:
        return np.zeros(windows, np.uint8)
    flags = np.unpackbits(payload[: (windows + 7) // 8], bitorder="little")
    if flags[windows:].any():
        raise BuddysimError(f"{algorithm}: payload: bits set after the last window's flag (corrupt)")
    return flags[:windows]
