"""Choice of the encoding of a storage, by the operators that write it and that read it in the backward pass."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from buddysim.gist.formats import DprFormat
from buddysim.gist.windows import MAX_WINDOW, Windows

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
    """Origin of a storage.

    Attributes
    ----------
    operator : ATen operator that wrote it; empty for input data, which no operator of the iteration wrote
    position : index among the operator's results
    windows : for indices of a max pool: extents of a plane and of its pooled plane, kernel, stride, padding, dilation
    dtype : element type of the saved tensor
    """

    operator: str
    position: int
    windows: tuple[Any, ...] | None
    dtype: str = ""


@dataclass(frozen=True)
class EncodingChoice:
    """Encoding chosen for a storage.

    Attributes
    ----------
    name : ``"raw"``: unencoded; ``"bits"``: a bit per element; ``"positions"``: 4 bits per window; ``"values"``: the
        smaller of sparse rows and fewer bits per value
    sparse : whether sparse rows may be used
    format : number format of values; None: single precision
    windows : windows of ``"positions"``
    """

    name: str
    sparse: bool = False
    format: DprFormat | None = None
    windows: Windows | None = None


def choose_encoding(origin: StorageOrigin, readers: AbstractSet[str], format: DprFormat | None) -> EncodingChoice:
    """Choose the encoding of a storage.

    Parameters
    ----------
    readers : operators that read the storage in the backward pass
    format : number format of delayed precision reduction; None: lossless encodings alone
    """
    if origin.windows is not None and origin.dtype == "torch.int64":
        (height, width), (out_height, out_width), kernel, stride, pad, dilation = origin.windows
        if kernel[0] * kernel[1] <= MAX_WINDOW:
            windows = Windows(height, width, out_height, out_width, kernel, stride, pad, dilation)
            return EncodingChoice("positions", windows=windows)
    is_feature_map = origin.operator and origin.position == 0 and origin.dtype == "torch.float32"
    if not is_feature_map or origin.operator in _RANDOM | _STATISTICS or not readers:
        return EncodingChoice("raw")
    if origin.operator in _RELU and _RELU_BACKWARD in readers and readers <= {_RELU_BACKWARD, _POOL_BACKWARD}:
        return EncodingChoice("bits")
    sparse = origin.operator in {*_RELU, "max_pool2d_with_indices"} and _CONV_BACKWARD in readers
    return EncodingChoice("values", sparse, format) if sparse or format is not None else EncodingChoice("raw")
