"""CSWAP's time model (Sec. IV-C): linear regression on size and sparsity, one sub-model per range of sparsity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from buddysim.base.errors import BuddysimError

#: Sparsities that models are fitted to (Sec. IV-C), and the default number of sub-models: the paper states none.
RANGE = (0.2, 0.8)
SUB_MODELS = 3


@dataclass(frozen=True)
class CodecTiming:
    """A tensor and the time of its encoding or decoding."""

    byte_count: int
    sparsity: float
    time_ps: int


class CodecTimeModel(Protocol):
    """A model that predicts times."""

    def predict(self, byte_count: int, sparsity: float) -> float:
        """Return the predicted picoseconds."""


Fit = Callable[[Sequence[CodecTiming]], CodecTimeModel]


@dataclass(frozen=True)
class LinearModel:
    """Regression ``a + b x size + c x sparsity`` for each range of sparsities; the outer ranges are open-ended."""

    coefficients: tuple[tuple[float, float, float], ...]

    def predict(self, byte_count: int, sparsity: float) -> float:
        """Return the predicted picoseconds."""
        a, b, c = self.coefficients[_range(sparsity, len(self.coefficients))]
        return a + b * byte_count + c * sparsity


def _range(sparsity: float, ranges: int) -> int:
    low, high = RANGE
    return min(max(int((sparsity - low) / (high - low) * ranges + 1e-9), 0), ranges - 1)


def fit_linear(rows: Sequence[CodecTiming], sub_models: int = SUB_MODELS) -> LinearModel:
    """Fit by least squares in each range, over the rows within `RANGE`.

    Raises
    ------
    BuddysimError
        if a range has fewer than three rows
    """
    coefficients = []
    used = [row for row in rows if RANGE[0] <= row.sparsity <= RANGE[1]]
    for number in range(sub_models):
        own = [row for row in used if _range(row.sparsity, sub_models) == number]
        if len(own) < 3:
            raise BuddysimError(f"sub-model {number + 1} of {sub_models}: {len(own)} rows: expected three or more")
        a, b, c = _least_squares(own)
        coefficients.append((a, b, c))
    return LinearModel(tuple(coefficients))


def _least_squares(rows: Sequence[CodecTiming]) -> tuple[float, float, float]:
    size = max(row.byte_count for row in rows)  # columns of similar magnitude for the solver
    matrix: NDArray[np.float64] = np.array([[1.0, row.byte_count / size, row.sparsity] for row in rows])
    times = np.array([float(row.time_ps) for row in rows])
    a, b, c = np.linalg.lstsq(matrix, times, rcond=None)[0]
    return float(a), float(b) / size, float(c)


@dataclass(frozen=True)
class BandwidthModel:
    """Baseline model: bytes over the mean bandwidth of the fitted rows."""

    bytes_per_ps: float

    def predict(self, byte_count: int, sparsity: float) -> float:
        """Return the predicted picoseconds."""
        return byte_count / self.bytes_per_ps


def fit_bandwidth(rows: Sequence[CodecTiming]) -> BandwidthModel:
    """Fit the bandwidth: all bytes over all time."""
    return BandwidthModel(sum(row.byte_count for row in rows) / sum(row.time_ps for row in rows))


def relative_absolute_error(model: CodecTimeModel, rows: Sequence[CodecTiming]) -> float:
    """Return the relative absolute error: sum of errors over sum of distances from the mean (Sec. V-C)."""
    mean = sum(row.time_ps for row in rows) / len(rows)
    away = sum(abs(row.time_ps - mean) for row in rows)
    return sum(abs(model.predict(row.byte_count, row.sparsity) - row.time_ps) for row in rows) / away
