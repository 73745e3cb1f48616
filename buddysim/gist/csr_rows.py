"""A feature map as compressed sparse rows, and its size in bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from buddysim.base.errors import BuddysimError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

COLUMNS = 256
INDEX_BYTES = (1, 4)
END_BYTES = 4


@dataclass(frozen=True, eq=False)
class CsrRows:
    """Compressed sparse rows.

    Attributes
    ----------
    count : elements of the feature map
    columns : columns of a row
    values : nonzero values, row by row, 4 bytes each
    indices : column of each value; uint8 or uint32
    ends : uint32; number of values up to the end of each row
    """

    count: int
    columns: int
    values: NDArray[Any]
    indices: NDArray[Any]
    ends: NDArray[np.uint32]

    @property
    def nbytes(self) -> int:
        """Bytes of values, indices and ends."""
        return self.values.nbytes + self.indices.nbytes + self.ends.nbytes


def rows_bytes(count: int, nonzeros: int, value_bytes: int, columns: int = COLUMNS, index_bytes: int = 1) -> int:
    """Bytes of the sparse rows of a feature map.

    Parameters
    ----------
    count : elements of the feature map
    nonzeros : nonzero elements
    value_bytes : bytes of all stored values
    columns, index_bytes : columns of a row, bytes of a column index
    """
    return value_bytes + nonzeros * index_bytes + -(-count // columns) * END_BYTES


def check_columns(columns: int, index_bytes: int) -> None:
    """Check that indices of that size can number the columns of a row.

    Parameters
    ----------
    columns : columns of a row
    index_bytes : bytes of a column index, 1 or 4

    Raises
    ------
    BuddysimError
        if the size of an index is unknown, or a row has more columns than it can number
    """
    if index_bytes not in INDEX_BYTES:
        raise BuddysimError(f"index_bytes {index_bytes}: unknown size: expected 1 or 4")
    max_columns = 256 if index_bytes == 1 else 2**32 - 1
    if not 1 <= columns <= max_columns:
        raise BuddysimError(
            f"columns {columns}: out of range: expected 1 to {max_columns} with indices of {index_bytes} B"
        )
