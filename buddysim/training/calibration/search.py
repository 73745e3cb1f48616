"""Least squares of logarithms, robust against single rows that are far off."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

OUTLIER = 0.1
"""Relative error from which a row's weight falls: single timings are up to 40 % off either way."""

DIGITS = 4


class Bounds(NamedTuple):
    """Where a search begins, and what it does not leave."""

    start: float
    low: float
    high: float


def fitted(
    predict: Callable[[Mapping[str, float]], NDArray[np.float64]],
    seconds: NDArray[np.float64],
    free: Mapping[str, Bounds],
    fixed: Mapping[str, float] | None = None,
    evaluations: int = 30,
) -> dict[str, float]:
    """Return the constants for which predictions are nearest to measured times.

    Parameters
    ----------
    predict : times in seconds for constants by name
    seconds : measured
    free : constants that are searched
    fixed : constants that are not
    """
    from scipy.optimize import least_squares

    names = list(free)
    logarithms = np.log(seconds)

    def named(values: NDArray[np.float64]) -> dict[str, float]:
        return {**(fixed or {}), **{name: float(value) for name, value in zip(names, values, strict=True)}}

    def away(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.log(predict(named(values))) - logarithms)

    start = np.array([free[name].start for name in names])
    solution = least_squares(
        away,
        start,
        bounds=([free[name].low for name in names], [free[name].high for name in names]),
        loss="soft_l1",
        f_scale=OUTLIER,
        x_scale=np.maximum(start, 0.1),
        diff_step=1e-2,
        max_nfev=evaluations,
    )
    return {name: round(value, DIGITS) for name, value in named(solution.x).items()}
