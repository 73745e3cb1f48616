"""Entries and tensors through any compressor, by its name."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from buddysim.base.errors import BuddysimError
from buddysim.compress.compressors import Compressor, Data, find, find_for_entries, in_windows, profile_options
from buddysim.compress.size_classes import ENTRY_BYTES, class_numbers
from buddysim.compress.zeros import zero_entries

#: The compressor wherever none is named: Buddy Compression's (Bit-Plane Compression).
DEFAULT = "bpc"

_BLOCK_BYTES = 8192 * ENTRY_BYTES


def compressed_bits(data: Data, algorithm: str = DEFAULT, **options: Any) -> NDArray[np.uint32]:
    """Compressed size of every 128 B entry (or of every window), in bits, uncapped.

    Parameters
    ----------
    data : C-contiguous array or buffer, a multiple of 128 bytes long (of the word size, for windows)
    algorithm : name of the compressor
    options : of the compressor, for example ``unsigned=True``; ``window=4096``: windows of a tensor, not entries

    Returns
    -------
    uint32 array, one size per entry or window
    """
    compressor = find(algorithm, options)
    return compressor.compressed_bits(_complete_entries(data, compressor, options), **options)


def compress(entry: Data, algorithm: str = DEFAULT, **options: Any) -> bytes:
    """Return the payload of one entry or several in sequence, padded with zero bits to whole bytes."""
    compressor = find(algorithm, options)
    return compressor.compress(_complete_entries(entry, compressor, options), **options)


def decompress(payload: Data, algorithm: str = DEFAULT, nbytes: int = ENTRY_BYTES, **options: Any) -> bytes:
    """Return the data of a payload.

    Parameters
    ----------
    payload : result of `compress`; another payload is a BuddysimError
    algorithm, options : as for `compress`
    nbytes : length of the data
    """
    compressor = find(algorithm, options)
    if isinstance(nbytes, bool) or not isinstance(nbytes, int | np.integer) or not 0 <= nbytes < 2**62:
        raise BuddysimError(f"length of the data {nbytes!r}: expected a number of bytes from 0")
    if not in_windows(compressor, options) and nbytes % ENTRY_BYTES:
        raise BuddysimError(f"length of the data {nbytes} B: expected a multiple of {ENTRY_BYTES} B")
    return compressor.decompress(_bytes_of(payload, "payload"), int(nbytes), **options)


def entry_classes(data: Data, algorithm: str = DEFAULT, **options: Any) -> NDArray[np.uint8]:
    """Class number (0 to 7, docs/developers/architecture.md) of every entry; a last, partial entry is padded with
    zeros."""
    compressor = find_for_entries(algorithm, options)
    raw = _bytes_of(data, "data")
    options = profile_options(compressor, [raw]) | options
    whole = len(raw) // ENTRY_BYTES * ENTRY_BYTES
    classes = np.empty(-(-len(raw) // ENTRY_BYTES), dtype=np.uint8)
    for start in range(0, whole, _BLOCK_BYTES):
        block = raw[start : min(start + _BLOCK_BYTES, whole)]
        bits = compressor.compressed_bits(block, **options)
        classes[start // ENTRY_BYTES :][: len(bits)] = class_numbers(bits, zero_entries(block))
    if whole < len(raw):
        last = np.zeros(ENTRY_BYTES, dtype=np.uint8)
        last[: len(raw) - whole] = raw[whole:]
        classes[-1] = class_numbers(compressor.compressed_bits(last, **options), zero_entries(last))[0]
    return classes


def _complete_entries(data: Data, compressor: Compressor, options: dict[str, Any]) -> NDArray[np.uint8]:
    raw = _bytes_of(data, "data")
    if len(raw) % ENTRY_BYTES and not in_windows(compressor, options):
        raise BuddysimError(f"data of {len(raw)} B: expected a multiple of {ENTRY_BYTES} B")
    return raw


def _bytes_of(data: Data, what: str) -> NDArray[np.uint8]:
    """The bytes of an array or buffer, not copied."""
    if isinstance(data, np.ndarray):
        if not data.flags.c_contiguous:
            raise BuddysimError(f"{what}: not C-contiguous: expected a contiguous array (see numpy.ascontiguousarray)")
        if data.dtype.hasobject:
            raise BuddysimError(f"{what}: an array of Python objects: expected numbers or bytes")
        return data.reshape(-1).view(np.uint8)
    try:
        view = memoryview(data)
    except TypeError:
        raise BuddysimError(f"{what}: {type(data).__name__}: expected a C-contiguous array or buffer") from None
    if not view.c_contiguous:
        raise BuddysimError(f"{what}: not C-contiguous: expected a contiguous buffer")
    return np.frombuffer(view, dtype=np.uint8) if view.nbytes else np.empty(0, dtype=np.uint8)
