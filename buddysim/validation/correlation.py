"""How alike two simulators, or a simulator and a GPU, order and space what both timed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import StatisticsError, correlation


def log_correlation(pairs: Sequence[tuple[float, float]]) -> float:
    """Pearson's correlation of the logarithms of pairs; 1 for fewer than two, NaN where one side is constant."""
    if len(pairs) < 2:
        return 1.0
    try:  # without SciPy, whose import takes as long as a figure
        return correlation([math.log(a) for a, _ in pairs], [math.log(b) for _, b in pairs])
    except StatisticsError:
        return math.nan
