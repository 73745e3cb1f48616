"""zlib (DEFLATE, RFC 1950 and 1951) over the windows of a tensor, by the library that Python has.

Sizes depend on the library: its version and the level are part of every result's provenance (`provenance`). There is no
reference model, as the payloads are the library's; its own checksum guards both directions.
"""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import NDArray

from buddysim.base.errors import BuddysimError
from buddysim.base.parsers.inflate import inflated
from buddysim.compress.windows import TENSOR_WINDOW, bits_of, check_window, flags_of, joined, window_count

ORDER = 40
#: An entry is too short for a dictionary: data are always windows.
TENSORS_ONLY = True

#: Options and their defaults. ``level``: 0 (stored) to 9 (smallest); ``window``: bytes compressed on their own;
#: ``raw_fallback``: one bit more per window, and none gets longer than that.
OPTIONS: dict[str, object] = {"level": 6, "window": TENSOR_WINDOW, "raw_fallback": False}

#: The shortest stream of RFC 1950: 2 bytes of header, an empty block, 4 bytes of checksum.
_SHORTEST = 8


def library() -> str:
    """Name and version of the library that makes the codes."""
    return f"zlib {zlib.ZLIB_RUNTIME_VERSION}"


def provenance() -> str:
    """The default level and the library, for results."""
    return f"level {OPTIONS['level']} of {library()}"


def compressed_bits(
    data: NDArray[np.uint8], *, level: int = 6, window: int = TENSOR_WINDOW, raw_fallback: bool = False
) -> NDArray[np.uint32]:
    """Size of every window in bits, as a stream of its own with header and checksum; any number of bytes."""
    _check(level, window)
    return bits_of(_codes(data, level, window), len(data), window, raw_fallback)


def compress(
    data: NDArray[np.uint8], *, level: int = 6, window: int = TENSOR_WINDOW, raw_fallback: bool = False
) -> bytes:
    """Return the windows' streams in sequence, padded to whole bytes; with `raw_fallback` flags precede them."""
    _check(level, window)
    return joined(_codes(data, level, window), data, window, raw_fallback)


def decompress(
    payload: NDArray[np.uint8],
    nbytes: int,
    *,
    level: int = 6,
    window: int = TENSOR_WINDOW,
    raw_fallback: bool = False,
) -> bytes:
    """Return the data of streams of any version and level of zlib; other bytes are a `BuddysimError`."""
    _check(level, window)
    windows = window_count(nbytes, window)
    at = (windows + 7) // 8 if raw_fallback else 0
    if at + (0 if raw_fallback else windows * _SHORTEST) > len(payload):
        raise BuddysimError(f"zlib: payload of {len(payload)} bytes: too short for {nbytes} bytes of data")
    flags = flags_of("zlib", payload, windows, raw_fallback)
    rest = payload[at:].tobytes()
    decoded_windows, done = [], 0
    for i in range(windows):
        length = min(window, nbytes - i * window)
        if flags[i]:
            decoded, taken = rest[done : done + length], length
        else:
            decoded, taken = _inflate(rest, done, length, i)
        if len(decoded) != length:
            raise BuddysimError(f"zlib: payload: window {i} has {len(decoded)} bytes: expected {length} (corrupt)")
        decoded_windows.append(decoded)
        done += taken
    if done != len(rest):
        raise BuddysimError(f"zlib: payload of {len(payload)} bytes: {nbytes} bytes of data end before (corrupt)")
    return b"".join(decoded_windows)


def _check(level: int, window: int) -> None:
    if not 0 <= level <= 9:
        raise BuddysimError(f"zlib: level {level}: expected 0 to 9")
    check_window("zlib", window, 1)


def _codes(data: NDArray[np.uint8], level: int, window: int) -> list[bytes]:
    return [zlib.compress(data[first : first + window].data, level) for first in range(0, len(data), window)]


def _inflate(stream: bytes, at: int, length: int, number: int) -> tuple[bytes, int]:
    """The data of the stream that begins there, and its own length."""
    # No window's code is much longer than the window (stored blocks cost 5 bytes per 16 KB).
    head = stream[at : at + length + 64 + length // 1000]
    stream_data = inflated(head, length, f"zlib: payload: window {number} from byte {at} on: corrupt")
    if not stream_data.is_whole:
        raise BuddysimError(f"zlib: payload: window {number} from byte {at} on: has no end (corrupt)")
    return stream_data.data, stream_data.used
