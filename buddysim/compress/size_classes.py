"""Size classes: the sizes at which a memory system stores compressed entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from buddysim.base.errors import BuddysimError

ENTRY_BYTES = 128
SECTOR_BYTES = 32

#: Bytes of the classes 0 to 7 (docs/developers/architecture.md): those of the study of Fig. 3 of the Buddy Compression
#: paper.
STUDY_CLASSES = (0, 8, 16, 32, 64, 80, 96, 128)
#: Classes of the design itself: whole sectors.
SECTOR_CLASSES = (0, 32, 64, 96, 128)
#: The number of an entry whose size isn't known.
UNKNOWN_CLASS = 15
#: Sectors that an entry of class 0 to 7 needs.
SECTORS_OF_CLASS = tuple(-(-size // SECTOR_BYTES) for size in STUDY_CLASSES)


@overload
def size_class(bits: int, classes: Sequence[int] = ..., zero: bool | None = ...) -> int: ...
@overload
def size_class(bits: ArrayLike, classes: Sequence[int] = ..., zero: ArrayLike | None = ...) -> NDArray[np.uint32]: ...
def size_class(
    bits: ArrayLike, classes: Sequence[int] = STUDY_CLASSES, zero: ArrayLike | None = None
) -> int | NDArray[np.uint32]:
    """Return the size class of entries in bytes: the smallest class that holds them, at most 128.

    Parameters
    ----------
    bits : compressed sizes; 0 only for an entry that is stored as nothing
    classes : bytes of the classes, the largest one 128
    zero : where the entry is all zero (`zeros.zero_entries`); those take class 0 where there is one

    Returns
    -------
    bytes, an int for an int and a uint32 array for an array

    Notes
    -----
    A compressed zero entry still has bits: 10 with BPC. Its data or metadata tell that it takes no space, its size
    does not. So pass ``zero``, or a size of 0.
    """
    table = np.asarray(sorted(classes), dtype=np.uint32)
    if not len(table) or table[-1] != ENTRY_BYTES or table[0] > ENTRY_BYTES:
        raise BuddysimError(
            f"size classes {tuple(classes)}: expected byte sizes up to {ENTRY_BYTES}, with {ENTRY_BYTES} itself"
        )
    sizes = np.asarray(bits)
    if sizes.dtype.kind not in "iu" or (sizes.size and sizes.min() < 0):
        raise BuddysimError("sizes in bits: expected integers from 0")
    nbytes = np.minimum((sizes.astype(np.int64) + 7) // 8, ENTRY_BYTES)
    if zero is not None:
        nbytes = np.where(np.asarray(zero, dtype=np.bool_), 0, nbytes)
    stored = table[np.searchsorted(table, nbytes)]
    return int(stored) if sizes.ndim == 0 else stored


@overload
def sectors_needed(bits: int, zero: bool | None = ...) -> int: ...
@overload
def sectors_needed(bits: ArrayLike, zero: ArrayLike | None = ...) -> NDArray[np.uint32]: ...
def sectors_needed(bits: ArrayLike, zero: ArrayLike | None = None) -> int | NDArray[np.uint32]:
    """Return the sectors of 32 B, 0 to 4, that entries of given sizes need; parameters as in `size_class`."""
    sectors = np.asarray(size_class(bits, SECTOR_CLASSES, zero)) // SECTOR_BYTES
    return int(sectors) if sectors.ndim == 0 else sectors.astype(np.uint32)


def class_numbers(bits: NDArray[np.uint32], zero: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Class numbers (0 to 7) of sizes in bits."""
    numbers = _CLASS_OF_BITS.take(bits, mode="clip")
    numbers[zero] = 0
    return numbers


_CLASS_OF_BITS = np.searchsorted(STUDY_CLASSES, (np.arange(8 * ENTRY_BYTES + 1) + 7) // 8).astype(np.uint8)
