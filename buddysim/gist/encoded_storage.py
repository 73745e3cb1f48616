"""Encodings of PyTorch storages, both ways; an encoding that is not smaller than the storage is not used."""

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
    """Contents of a storage in one encoding."""

    name: ClassVar[str]

    @property
    def nbytes(self) -> int:
        """Size in bytes."""

    def decoded(self) -> torch.Tensor:
        """Return a flat tensor with the contents of the storage."""


@dataclass(frozen=True, eq=False)
class RawStorage:
    """The unencoded storage."""

    name: ClassVar[str] = "raw"
    storage: torch.UntypedStorage

    @property
    def nbytes(self) -> int:
        return int(self.storage.nbytes())

    def decoded(self) -> torch.Tensor:
        return torch.empty(0, dtype=torch.uint8).set_(self.storage)


@dataclass(frozen=True, eq=False)
class BitmapEncoding:
    """A bit per element; decoded to 1 and 0."""

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
    """Positions of the largest elements of windows; decoded to indices in the plane."""

    name: ClassVar[str] = "positions"
    payload: NDArray[np.uint8]
    planes: int
    windows: Windows

    @property
    def nbytes(self) -> int:
        return self.payload.nbytes

    def decoded(self) -> torch.Tensor:
        return torch.from_numpy(binarize.indices_from_positions(self.payload, self.planes, self.windows))


@dataclass(frozen=True, eq=False)
class ReducedPrecision:
    """Values with fewer bits each."""

    name: ClassVar[str] = "dpr"
    payload: NDArray[np.uint8]
    format: str
    count: int

    @property
    def nbytes(self) -> int:
        return self.payload.nbytes

    def decoded(self) -> torch.Tensor:
        return torch.from_numpy(dpr.decode(self.payload, self.format, self.count))


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Compressed sparse rows, optionally with fewer bits per value."""

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
    """Encode a storage in the smallest encoding that applies."""
    candidates: list[EncodedStorage] = [RawStorage(storage)]
    if encoding.name == "bits":
        values = _array(storage, torch.float32)
        candidates.append(BitmapEncoding(binarize.encode(values), values.size))
    elif encoding.name == "positions":
        assert encoding.windows is not None
        indices = _array(storage, torch.int64)
        positions = binarize.positions_from_indices(indices, encoding.windows)
        candidates.append(MaxPositions(positions, indices.size // encoding.windows.out_plane, encoding.windows))
    elif encoding.name == "values":
        values = _array(storage, torch.float32)
        name = None if encoding.format is None else encoding.format.name
        if name is not None:
            candidates.append(ReducedPrecision(dpr.encode(values, name), name, values.size))
        if encoding.sparse:
            rows = ssdc.encode(values)
            if name is None:
                candidates.append(SparseRows(rows))
            else:
                stored = ReducedPrecision(dpr.encode(rows.values, name), name, rows.values.size)
                candidates.append(SparseRows(replace(rows, values=rows.values[:0]), stored))
    return min(candidates, key=lambda candidate: candidate.nbytes)


def _array(storage: torch.UntypedStorage, dtype: torch.dtype) -> NDArray[Any]:
    array: NDArray[Any] = torch.empty(0, dtype=dtype).set_(storage).numpy()
    return array
