"""How much smaller compressors make a tensor, by its layout in memory and their window (cDMA, Sec. VII-A)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buddysim.base.errors import BuddysimError
from buddysim.compress import compressed_bits
from buddysim.compress.windows import TENSOR_WINDOW

#: Orders of a feature map's axes in memory, the last one contiguous: samples, channels, height, width.
LAYOUTS = ("NCHW", "NHWC", "CHWN")
#: cDMA's compressors.
ALGORITHMS = ("zvc", "rle", "zlib")

_AXES = {"N": 0, "C": 1, "H": 2, "W": 3}


@dataclass(frozen=True)
class TensorRatio:
    """What one compressor makes of one tensor.

    Attributes
    ----------
    algorithm, layout : names
    window : bytes compressed on their own
    raw_bytes : of the tensor
    bits : of all its windows' codes
    mask_bits : those of them that only say where the zeros are (ZVC; 0 for others)
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
        """The same, masks not counted, as the cDMA paper counts (60 % zeros: 2.5); infinite for nothing but zeros."""
        kept = self.bits - self.mask_bits
        return self.raw_bytes * 8 / kept if kept else float("inf")


def density(tensor: NDArray[Any]) -> float:
    """Share of words that are not zero, bit by bit: -0.0 counts."""
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
    algorithms: Sequence[str] = ALGORITHMS,
) -> list[TensorRatio]:
    """Compresses a tensor in every layout, window and algorithm.

    Parameters
    ----------
    tensor : (N, C, H, W) or (N, features), of words of 8, 16 or 32 bits (zlib and RLE: any that fill 32-bit words)
    layouts : of `LAYOUTS`
    windows : bytes
    algorithms : compressors of tensors

    Returns
    -------
    one per layout, window and algorithm, in this order
    """
    found = []
    windows = tuple(windows)
    for layout in layouts:
        arranged = in_layout(tensor, layout)
        for window in windows:
            for algorithm in algorithms:
                options: dict[str, Any] = {"window": window}
                if algorithm == "zvc":
                    options["word_bits"] = 8 * arranged.dtype.itemsize
                bits = int(compressed_bits(arranged, algorithm, **options).sum(dtype=np.int64))
                masks = arranged.size if algorithm == "zvc" else 0
                found.append(TensorRatio(algorithm, layout, window, arranged.nbytes, bits, masks))
    return found


def _words(tensor: NDArray[Any]) -> NDArray[Any]:
    """The elements as unsigned numbers of the same bits."""
    return np.ascontiguousarray(tensor).view(f"u{tensor.dtype.itemsize}")
