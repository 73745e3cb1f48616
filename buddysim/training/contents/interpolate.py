"""Linear interpolation between observed values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class PiecewiseLinear:
    """Linear interpolation between points of increasing `x`; constant outside of them."""

    points: tuple[tuple[float, float], ...]

    @classmethod
    def through(cls, points: Iterable[tuple[float, float]]) -> PiecewiseLinear:
        """Make the interpolation from points in any order; points of equal x count as their mean."""
        by_x: defaultdict[float, list[float]] = defaultdict(list)
        for x, y in points:
            by_x[x].append(y)
        return cls(tuple((x, sum(ys) / len(ys)) for x, ys in sorted(by_x.items())))

    def value_at(self, x: float) -> float:
        """Return the value at x."""
        first, last = self.points[0], self.points[-1]
        if x <= first[0]:
            return first[1]
        for (x0, y0), (x1, y1) in pairwise(self.points):
            if x <= x1:
                return y0 + (y1 - y0) * (x - x0) / (x1 - x0)
        return last[1]


def mean_over(points: Iterable[tuple[float, float]]) -> float:
    """Return the mean of the piecewise linear function through the points, over the span of x.

    If all points have one x, it is the mean of their values.
    """
    line = PiecewiseLinear.through(points).points
    if len(line) == 1:
        return line[0][1]
    area = sum((x1 - x0) * (y0 + y1) / 2 for (x0, y0), (x1, y1) in pairwise(line))
    return area / (line[-1][0] - line[0][0])
