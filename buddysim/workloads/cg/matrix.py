"""The matrix of NAS CG (RNR-94-007, section 2.3.4; `makea` and `sparse` of cg.f)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from buddysim.workloads import nas_random

_RCOND = 0.1
_DIAGONAL = 0.5


@dataclass(frozen=True)
class Matrix:
    """Symmetric matrix in compressed rows, in the arrays of cg.f.

    Attributes
    ----------
    values, columns : float64 and int32 (n (nonzer + 1)^2): the entries, by rows and columns, and after them
        what the assembly leaves
    row_starts : int32 (n + 1)
    """

    values: NDArray[np.float64]
    columns: NDArray[np.int32]
    row_starts: NDArray[np.int32]

    @property
    def entries(self) -> int:
        return int(self.row_starts[-1])


def make_matrix(n: int, nonzer: int, shift: float, seed: int = nas_random.SEED) -> Matrix:
    """Return the sum of weighted outer products of sparse random vectors, plus a multiple of the identity.

    Parameters
    ----------
    n, nonzer, shift : order, random elements of each vector, shift of the eigenvalues
    seed : of the random numbers
    """
    positions, elements, lengths = _vectors(n, nonzer, seed)
    row, column, value = _products(n, shift, positions, elements, lengths)
    # In order of rows and columns; equal ones stay in the order of their vectors, so sums are those of cg.f.
    order = np.lexsort((column, row))
    row, column, value = row[order], column[order], value[order]
    first = np.r_[True, (row[1:] != row[:-1]) | (column[1:] != column[:-1])]
    number = np.cumsum(first) - 1
    summed = np.bincount(number, value)
    row, column = row[first], column[first]
    row_starts = np.r_[0, np.cumsum(np.bincount(row, minlength=n))]
    # As in cg.f: rows are assembled with space for duplicates and then compacted; entries behind the last row stay.
    capacity = n * (nonzer + 1) ** 2
    space = np.zeros(n, np.int64)
    np.add.at(space, positions.ravel()[positions.ravel() >= 0], np.repeat(lengths, lengths))
    starts = np.r_[0, np.cumsum(space)]
    spread = starts[row] + np.arange(len(row)) - row_starts[row]
    values, columns = np.zeros(capacity), np.zeros(capacity, np.int32)
    columns[: starts[-1]] = -1
    values[spread], columns[spread] = summed, column
    values[: len(row)], columns[: len(row)] = summed, column
    return Matrix(values, columns, row_starts.astype(np.int32))


def _vectors(n: int, nonzer: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Return positions (-1: none), elements (n, nonzer + 1) and lengths of the vectors, as `sprnvc` and `vecset` do."""
    width = 1 << max(n - 1, 1).bit_length()
    samples = nas_random.stream(seed, 1 + 2 * (nonzer * width * 5 // 4 + 1000))[1:]
    sampled_elements, sampled_positions = samples[::2], (samples[1::2] * width).astype(np.int64)
    inside = sampled_positions < n
    candidates = iter(zip(sampled_positions[inside].tolist(), sampled_elements[inside].tolist(), strict=True))
    positions = np.full((n, nonzer + 1), -1, np.int64)
    elements = np.zeros((n, nonzer + 1))
    lengths = np.empty(n, np.int64)
    for row in range(n):
        vector: dict[int, float] = {}
        while len(vector) < nonzer:
            position, element = next(candidates)
            vector.setdefault(position, element)
        vector[row] = _DIAGONAL
        lengths[row] = len(vector)
        positions[row, : len(vector)] = list(vector)
        elements[row, : len(vector)] = list(vector.values())
    return positions, elements, lengths


def _products(
    n: int, shift: float, positions: NDArray[np.int64], elements: NDArray[np.float64], lengths: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return rows, columns and values of the outer products, in the order in which cg.f adds them."""
    weights = np.empty(n)
    weight, ratio = 1.0, _RCOND ** (1.0 / n)
    for number in range(n):
        weights[number] = weight
        weight *= ratio
    width = positions.shape[1]
    scaled = weights[:, None] * elements
    row = np.repeat(positions, width, axis=1).ravel()
    column = np.tile(positions, (1, width)).ravel()
    value = np.tile(elements, (1, width)) * np.repeat(scaled, width, axis=1)
    vector = np.repeat(np.arange(n), width * width)
    value = value.ravel()
    diagonal = (row == column) & (row == vector)
    value[diagonal] = value[diagonal] + _RCOND - shift
    is_present = (row >= 0) & (column >= 0)
    return row[is_present], column[is_present], value[is_present]
