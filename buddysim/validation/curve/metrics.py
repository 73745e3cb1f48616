"""What is said of a curve: its plateaus, its knees, its errors (docs/validation-rules.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from buddysim.machine import Machine

KIB = 1024
MEDIAN_TOLERANCE, P90_TOLERANCE, KNEE_TOLERANCE = 0.05, 0.20, 0.15
_APART = 1.2
Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Level:
    """Where a level of memory shows as a plateau: footprints in KiB."""

    name: str
    least: float
    most: float

    def has(self, x: float) -> bool:
        return self.least <= x <= self.most


def levels(machine: Machine) -> tuple[Level, Level, Level]:
    """The footprints at which L1, L2 and device memory alone answer."""
    l1, l2 = machine.l1.size / KIB, machine.l2.size / KIB
    return (
        Level("L1", 0, l1 / 2),
        Level("L2", 2 * l1, l2 / 4),
        Level("device memory", 4 * l2, math.inf),
    )


def far_partition(machine: Machine) -> Level:
    """The footprints at which a chase finds half of its lines in the far partition of the L2, and no others."""
    l2 = machine.l2.size / KIB
    return Level("far partition", 0.65 * l2, 0.9 * l2)


def plateau(points: Points, level: Level) -> float | None:
    """The median of a curve where a level answers; None where it has no points there."""
    values = [y for x, y in points if level.has(x)]
    return median(values) if values else None


def knee(points: Points, before: Level, behind: Level, is_latency: bool) -> float | None:
    """Where a curve crosses the middle between two plateaus, KiB.

    Returns
    -------
    float, on a line between points over the footprint's logarithm; None where it has not both plateaus, or they are
    less than 20 % apart
    """
    low, high = plateau(points, before), plateau(points, behind)
    if low is None or high is None or max(low / high, high / low) < _APART:
        return None
    scaled = (lambda y: y) if is_latency else math.log
    middle = (scaled(low) + scaled(high)) / 2
    between = [(x, y) for x, y in points if x > before.most / 2 and x > 0]
    for (x0, y0), (x1, y1) in pairwise(between):
        side0, side1 = scaled(y0) - middle, scaled(y1) - middle
        if side0 == 0 or side0 * side1 < 0:
            part = side0 / (side0 - side1)
            return math.exp(math.log(x0) + part * (math.log(x1) - math.log(x0)))
    return None


def errors(simulated: Sequence[float], measured: Sequence[float]) -> list[float]:
    """|simulated / measured - 1| of each point."""
    return [abs(ours / theirs - 1) for ours, theirs in zip(simulated, measured, strict=True)]


def percentile(values: Sequence[float], share: float) -> float:
    """The value that a share of them doesn't exceed: of n values the one of rank ceil(share n)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
