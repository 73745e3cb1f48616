"""A map as compressed sparse rows, and the bytes that takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buddysim.base.errors import BuddysimError

COLUMNS = 256
INDEX_BYTES = (1, 4)
END_BYTES = 4


@dataclass(frozen=True, eq=False)
class CsrRows:
    """Compressed sparse rows.

    Attributes
    ----------
    count : elements of the map
    columns : of a row
    values : that aren't zero, row by row, of 4 bytes each
    indices : the column of each; uint8 or uint32
    ends : uint32; for each row, how many values there are up to its end
    """

    count: int
    columns: int
    values: NDArray[Any]
    indices: NDArray[Any]
    ends: NDArray[np.uint32]

    @property
    def nbytes(self) -> int:
        """Bytes of all three."""
        return self.values.nbytes + self.indices.nbytes + self.ends.nbytes


def rows_bytes(count: int, kept: int, value_bytes: int, columns: int = COLUMNS, index_bytes: int = 1) -> int:
    """Bytes of the rows of a map.

    Parameters
    ----------
    count : elements of the map
    kept : of them that aren't zero
    value_bytes : of all kept values
    columns, index_bytes : of a row, of a column's number
    """
    return value_bytes + kept * index_bytes + -(-count // columns) * END_BYTES


def check_columns(columns: int, index_bytes: int) -> None:
    """Raises a BuddysimError where columns of that many can't be numbered."""
    if index_bytes not in INDEX_BYTES:
        raise BuddysimError(f"index_bytes {index_bytes}: expected 1 or 4")
    most = 256 if index_bytes == 1 else 2**32 - 1
    if not 1 <= columns <= most:
        raise BuddysimError(f"columns {columns}: expected 1 to {most} with indices of {index_bytes} B")
