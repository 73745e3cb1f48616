"""Storages of PyTorch as codes, and back; a code that isn't smaller than the storage isn't taken."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from buddysim.gist import binarize, dpr, ssdc
from buddysim.gist.csr_rows import CsrRows
from buddysim.gist.policy import EncodingChoice
from buddysim.gist.windows import Windows


class EncodedStorage(Protocol):
    """A storage's content."""

    name: ClassVar[str]

    @property
    def nbytes(self) -> int:
        """Bytes that it takes."""

    def decoded(self) -> torch.Tensor:
        """A flat tensor of a storage with the same content."""


@dataclass(frozen=True, eq=False)
class RawStorage:
    """The storage itself."""

    name: ClassVar[str] = "raw"
    storage: torch.UntypedStorage

    @property
    def nbytes(self) -> int:
        return int(self.storage.nbytes())

    def decoded(self) -> torch.Tensor:
        return torch.empty(0, dtype=torch.uint8).set_(self.storage)


@dataclass(frozen=True, eq=False)
class BitmapEncoding:
    """A bit per element: it comes back as 1 and 0."""

    name: ClassVar[str] = "bits"
    mask: NDArray[np.uint8]
    count: int

    @property
    def nbytes(self) -> int:
        return self.mask.nbytes

    def decoded(self) -> torch.Tensor:
        return torch.from_numpy(np.unpackbits(self.mask, count=self.count, bitorder="little").astype(np.float32))


@dataclass(frozen=True, eq=False)
class MaxPositions:
    """The places of the largest elements of windows: they come back as positions."""

    name: ClassVar[str] = "places"
    code: NDArray[np.uint8]
    planes: int
    windows: Windows

    @property
    def nbytes(self) -> int:
        return self.code.nbytes

    def decoded(self) -> torch.Tensor:
        return torch.from_numpy(binarize.to_indices(self.code, self.planes, self.windows))


@dataclass(frozen=True, eq=False)
class ReducedPrecision:
    """Values in fewer bits."""

    name: ClassVar[str] = "dpr"
    code: NDArray[np.uint8]
    format: str
    count: int

    @property
    def nbytes(self) -> int:
        return self.code.nbytes

    def decoded(self) -> torch.Tensor:
        return torch.from_numpy(dpr.decode(self.code, self.format, self.count))


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Sparse rows, their values perhaps in fewer bits."""

    name: ClassVar[str] = "ssdc"
    rows: CsrRows
    values: ReducedPrecision | None = None

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + (0 if self.values is None else self.values.nbytes)

    def decoded(self) -> torch.Tensor:
        rows = self.rows if self.values is None else replace(self.rows, values=self.values.decoded().numpy())
        return torch.from_numpy(ssdc.decode(rows))


def encode_storage(storage: torch.UntypedStorage, encoding: EncodingChoice) -> EncodedStorage:
    """The content of a storage, in the smallest code that applies."""
    codes: list[EncodedStorage] = [RawStorage(storage)]
    if encoding.name == "bits":
        values = _array(storage, torch.float32)
        codes.append(BitmapEncoding(binarize.encode(values), values.size))
    elif encoding.name == "places":
        assert encoding.windows is not None
        indices = _array(storage, torch.int64)
        places = binarize.from_indices(indices, encoding.windows)
        codes.append(MaxPositions(places, indices.size // encoding.windows.out_plane, encoding.windows))
    elif encoding.name == "map":
        values = _array(storage, torch.float32)
        name = None if encoding.format is None else encoding.format.name
        if name is not None:
            codes.append(ReducedPrecision(dpr.encode(values, name), name, values.size))
        if encoding.sparse:
            rows = ssdc.encode(values)
            if name is None:
                codes.append(SparseRows(rows))
            else:
                kept = ReducedPrecision(dpr.encode(rows.values, name), name, rows.values.size)
                codes.append(SparseRows(replace(rows, values=rows.values[:0]), kept))
    return min(codes, key=lambda code: code.nbytes)


def _array(storage: torch.UntypedStorage, dtype: torch.dtype) -> NDArray[Any]:
    found: NDArray[Any] = torch.empty(0, dtype=dtype).set_(storage).numpy()
    return found
