"""How alike two simulators, or a simulator and a GPU, order and space what both timed."""

from __future__ import annotations

import math
from collections.abc import Sequence


def log_correlation(pairs: Sequence[tuple[float, float]]) -> float:
    """Pearson's correlation of the logarithms of pairs; 1 for fewer than two."""
    if len(pairs) < 2:
        return 1.0
    from scipy.stats import pearsonr

    return float(pearsonr([math.log(a) for a, _ in pairs], [math.log(b) for _, b in pairs]).statistic)
