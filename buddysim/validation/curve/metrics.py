"""Metrics of a curve: its plateaus, its capacity transitions, its errors (docs/validation/method.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from buddysim.machine import Machine

KIB = 1024
MEDIAN_TOLERANCE, P90_TOLERANCE, TRANSITION_TOLERANCE = 0.05, 0.20, 0.15
_MIN_PLATEAU_RATIO = 1.2
Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Level:
    """A level of memory, and the footprints in KiB at which a curve shows it as a plateau."""

    name: str
    min_footprint: float
    max_footprint: float

    def has(self, x: float) -> bool:
        return self.min_footprint <= x <= self.max_footprint


def levels(machine: Machine) -> tuple[Level, Level, Level]:
    """Return the footprints at which L1, L2 and device memory alone answer."""
    l1, l2 = machine.l1.size / KIB, machine.l2.size / KIB
    return (
        Level("L1", 0, l1 / 2),
        Level("L2", 2 * l1, l2 / 4),
        Level("device memory", 4 * l2, math.inf),
    )


def remote_partition(machine: Machine) -> Level:
    """Return the footprints at which a chase has half of its lines in the remote partition of the L2."""
    l2 = machine.l2.size / KIB
    return Level("remote partition", 0.65 * l2, 0.9 * l2)


def plateau_value(points: Points, level: Level) -> float | None:
    """Return the median of a curve where a level answers; None if it has no points there."""
    values = [y for x, y in points if level.has(x)]
    return median(values) if values else None


def capacity_transition(points: Points, before: Level, behind: Level, is_latency: bool) -> float | None:
    """Return the footprint in KiB at which a curve crosses the midpoint between two plateaus.

    Returns
    -------
    float, interpolated over the footprint's logarithm; None if a plateau is missing, or the two are less than 20 %
    apart
    """
    low, high = plateau_value(points, before), plateau_value(points, behind)
    if low is None or high is None or max(low / high, high / low) < _MIN_PLATEAU_RATIO:
        return None
    scaled = (lambda y: y) if is_latency else math.log
    middle = (scaled(low) + scaled(high)) / 2
    between = [(x, y) for x, y in points if x > before.max_footprint / 2 and x > 0]
    for (x0, y0), (x1, y1) in pairwise(between):
        side0, side1 = scaled(y0) - middle, scaled(y1) - middle
        if side0 == 0 or side0 * side1 < 0:
            part = side0 / (side0 - side1)
            return math.exp(math.log(x0) + part * (math.log(x1) - math.log(x0)))
    return None


def absolute_errors(simulated: Sequence[float], measured: Sequence[float]) -> list[float]:
    """Return |simulated / measured - 1| of each point."""
    return [abs(value / reference - 1) for value, reference in zip(simulated, measured, strict=True)]


def percentile(values: Sequence[float], fraction: float) -> float:
    """Return the value that a fraction of `values` does not exceed: of n values the one of rank ceil(fraction n)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(fraction * len(ordered)) - 1)]
