"""Compression ratios of tensors, by layout in memory and window (cDMA, Sec. VII-A)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buddysim.base.errors import BuddysimError
from buddysim.compress import ENTRY_BYTES, compressed_bits
from buddysim.compress.compressors import find, tensor_algorithms
from buddysim.compress.layouts import LAYOUTS
from buddysim.compress.windows import TENSOR_WINDOW

_AXES = {"N": 0, "C": 1, "H": 2, "W": 3}


@dataclass(frozen=True)
class TensorRatio:
    """Compressed size of one tensor by one compressor.

    Attributes
    ----------
    algorithm, layout : names
    window : bytes compressed on their own
    raw_bytes : of the tensor
    bits : of all its windows' codes
    mask_bits : bits of the masks of zeros (0 for a compressor without masks)
    """

    algorithm: str
    layout: str
    window: int
    raw_bytes: int
    bits: int
    mask_bits: int = 0

    @property
    def ratio(self) -> float:
        """Bytes before over bytes after, exact."""
        return self.raw_bytes * 8 / self.bits

    @property
    def ratio_without_mask(self) -> float:
        """Ratio without masks, as in the cDMA paper (60 % zeros: 2.5); infinite if all words are zero."""
        value_bits = self.bits - self.mask_bits
        return self.raw_bytes * 8 / value_bits if value_bits else float("inf")


def density(tensor: NDArray[Any]) -> float:
    """Fraction of words that are not zero, bit by bit: -0.0 counts."""
    words = _words(tensor)
    return float(np.count_nonzero(words) / words.size) if words.size else 1.0


def in_layout(tensor: NDArray[Any], layout: str) -> NDArray[Any]:
    """A tensor of (N, C, H, W), or (N, features), as a contiguous array in another order of axes."""
    if layout not in LAYOUTS:
        raise BuddysimError(f"layout {layout!r}: expected one of {', '.join(LAYOUTS)}")
    if tensor.ndim not in (2, 4):
        raise BuddysimError(f"tensor of {tensor.ndim} axes: expected (N, C, H, W) or (N, features)")
    axes = [_AXES[axis] for axis in layout if _AXES[axis] < tensor.ndim]
    return np.ascontiguousarray(tensor.transpose(axes))


def tensor_ratios(
    tensor: NDArray[Any],
    layouts: Sequence[str] = LAYOUTS,
    windows: Iterable[int] = (TENSOR_WINDOW,),
    algorithms: Sequence[str] | None = None,
) -> list[TensorRatio]:
    """Compresses a tensor with every layout, window and compressor.

    Parameters
    ----------
    tensor : (N, C, H, W) or (N, features); a compressor that has an option ``word_bits`` is given the elements' size
    layouts : of `LAYOUTS`
    windows : bytes; compressors without windows take entries of 128 B instead, the last one padded with zeros
    algorithms : names of compressors; None: all of tensors

    Returns
    -------
    one per layout, window and algorithm, in this order
    """
    ratios = []
    windows = tuple(windows)
    algorithms = tensor_algorithms() if algorithms is None else algorithms
    for layout in layouts:
        arranged = in_layout(tensor, layout)
        for window in windows:
            for algorithm in algorithms:
                ratios.append(_ratio(arranged, layout, window, algorithm))
    return ratios


def _ratio(arranged: NDArray[Any], layout: str, window: int, algorithm: str) -> TensorRatio:
    compressor = find(algorithm)
    data, options = arranged, dict[str, Any]()
    if "window" in compressor.OPTIONS:
        options["window"] = window
    else:
        window = ENTRY_BYTES
        raw = arranged.reshape(-1).view(np.uint8)
        data = np.pad(raw, (0, -len(raw) % ENTRY_BYTES))
    if "word_bits" in compressor.OPTIONS:
        options["word_bits"] = 8 * arranged.dtype.itemsize
    bits = int(compressed_bits(data, algorithm, **options).sum(dtype=np.int64))
    masks = arranged.size * getattr(compressor, "MASK_BITS_PER_WORD", 0)
    return TensorRatio(algorithm, layout, window, arranged.nbytes, bits, masks)


def described(algorithms: Iterable[str]) -> str:
    """Names of compressors, each with the settings and versions its codes depend on: ``zvc, zlib (level 6 of ...)``."""
    notes = ((name, getattr(find(name), "provenance", None)) for name in algorithms)
    return ", ".join(f"{name} ({note()})" if note else name for name, note in notes)


def _words(tensor: NDArray[Any]) -> NDArray[Any]:
    """The elements as unsigned numbers of the same bits."""
    return np.ascontiguousarray(tensor).view(f"u{tensor.dtype.itemsize}")
