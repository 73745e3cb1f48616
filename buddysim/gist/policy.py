"""Which encoding a storage takes, by the operator that made it and those that read it in the backward pass."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from buddysim.gist.formats import DprFormat
from buddysim.gist.windows import LARGEST_WINDOW, Windows

_RELU = frozenset({"relu", "relu_", "threshold", "threshold_"})
_RELU_BACKWARD = "threshold_backward"
_POOL_BACKWARD = "max_pool2d_with_indices_backward"
_CONV_BACKWARD = "convolution_backward"
#: Operators whose results are random: masks.
_RANDOM = frozenset({"bernoulli", "bernoulli_", "native_dropout", "rand_like", "rand"})
#: Operators whose results are statistics.
_STATISTICS = frozenset(
    {"mean", "sum", "var", "std", "var_mean", "std_mean", "rsqrt", "amax", "amin", "logsumexp", "linalg_vector_norm"}
)


@dataclass(frozen=True)
class StorageOrigin:
    """Where a storage comes from.

    Attributes
    ----------
    operator : of ATen; empty where none of this iteration made it (the data)
    position : among the operator's results
    windows : extents of a plane and of its pooled one, kernel, stride, padding, dilation; of indices of a max pool
    dtype : of what was saved of it
    """

    operator: str
    position: int
    windows: tuple[Any, ...] | None
    dtype: str = ""


@dataclass(frozen=True)
class EncodingChoice:
    """What becomes of a storage.

    Attributes
    ----------
    name : ``"raw"``, ``"bits"``, ``"places"``, ``"map"``: a bit per element, 4 bits per window, or the smallest of
        sparse rows and fewer bits per value
    sparse : whether sparse rows may be taken
    format : of values; None: single precision
    windows : of places
    """

    name: str
    sparse: bool = False
    format: DprFormat | None = None
    windows: Windows | None = None


def choose(origin: StorageOrigin, readers: AbstractSet[str], format: DprFormat | None) -> EncodingChoice:
    """The encoding of a storage.

    Parameters
    ----------
    readers : operators that read it in the backward pass
    format : of delayed precision reduction; None: lossless encodings alone
    """
    if origin.windows is not None and origin.dtype == "torch.int64":
        (height, width), (out_height, out_width), kernel, stride, pad, dilation = origin.windows
        if kernel[0] * kernel[1] <= LARGEST_WINDOW:
            windows = Windows(height, width, out_height, out_width, kernel, stride, pad, dilation)
            return EncodingChoice("places", windows=windows)
    is_map = origin.operator and origin.position == 0 and origin.dtype == "torch.float32"
    if not is_map or origin.operator in _RANDOM | _STATISTICS or not readers:
        return EncodingChoice("raw")
    if origin.operator in _RELU and _RELU_BACKWARD in readers and readers <= {_RELU_BACKWARD, _POOL_BACKWARD}:
        return EncodingChoice("bits")
    sparse = origin.operator in {*_RELU, "max_pool2d_with_indices"} and _CONV_BACKWARD in readers
    return EncodingChoice("map", sparse, format) if sparse or format is not None else EncodingChoice("raw")
