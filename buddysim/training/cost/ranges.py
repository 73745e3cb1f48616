"""Ranges of predicted times: from errors of rows that nothing was fitted to, tested on sources that they haven't seen.

A range lies around the median ratio, as far either way as the quantile of the deviations' size: few rows give a
quantile of both signs together more surely than one of each. With n rows, it is the row of rank (n + 1) times the
level, so that a new row of the same kind lies inside with that probability (Vovk et al., Algorithmic Learning in a
Random World, 2005, section 2.2). The predicted time itself is always inside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, exp, log
from statistics import median

LEVEL = 0.92
"""Probability that a measured time lies in the range."""

GENERATIONS: Mapping[str, str] = {
    "a100-40": "Ampere",
    "a100-80": "Ampere",
    "h100-96": "Hopper",
    "h100-sxm": "Hopper",
}
OLDER = "older"


@dataclass(frozen=True)
class MeasuredRatio:
    """A measured time over the predicted one.

    Attributes
    ----------
    kind : of prediction
    source : who measured it; rows of one source are left out together
    """

    kind: str
    gpu: str
    source: str
    ratio: float


@dataclass(frozen=True)
class Coverage:
    """What ranges hold.

    Attributes
    ----------
    inside : fraction of the rows that lie in the range
    half_width : median over the rows, relative to the predicted time
    """

    rows: int
    inside: float
    half_width: float


def range_of(ratios: Sequence[float]) -> tuple[float, float]:
    """Return the smallest and largest ratio of measured to predicted time to expect."""
    centre = median(ratios)
    sizes = sorted(abs(log(ratio / centre)) for ratio in ratios)
    away = exp(sizes[min(len(sizes), ceil(LEVEL * (len(sizes) + 1))) - 1])
    return min(1.0, centre / away), max(1.0, centre * away)


def covered(ratios: Sequence[MeasuredRatio]) -> dict[tuple[str, str], Coverage]:
    """Return by kind and generation how many rows lie in a range that comes from the other sources alone."""
    held: dict[tuple[str, str], list[tuple[bool, float]]] = {}
    for one in ratios:
        others = [row.ratio for row in ratios if row.kind == one.kind and row.source != one.source]
        if others:
            low, high = range_of(others)
            generation = GENERATIONS.get(one.gpu, OLDER)
            held.setdefault((one.kind, generation), []).append((low <= one.ratio <= high, (high - low) / 2))
    return {
        key: Coverage(len(rows), sum(inside for inside, _ in rows) / len(rows), median(width for _, width in rows))
        for key, rows in sorted(held.items())
    }
