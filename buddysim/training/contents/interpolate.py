"""A value between measured ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class PiecewiseLinear:
    """Linear interpolation between points of growing `x`; constant before the first and after the last."""

    points: tuple[tuple[float, float], ...]

    @classmethod
    def through(cls, points: Iterable[tuple[float, float]]) -> PiecewiseLinear:
        """Points in any order; those of one x count as their mean."""
        by_x: defaultdict[float, list[float]] = defaultdict(list)
        for x, y in points:
            by_x[x].append(y)
        return cls(tuple((x, sum(ys) / len(ys)) for x, ys in sorted(by_x.items())))

    def value_at(self, x: float) -> float:
        """The value at x."""
        first, last = self.points[0], self.points[-1]
        if x <= first[0]:
            return first[1]
        for (x0, y0), (x1, y1) in pairwise(self.points):
            if x <= x1:
                return y0 + (y1 - y0) * (x - x0) / (x1 - x0)
        return last[1]


def mean_over(points: Iterable[tuple[float, float]]) -> float:
    """The mean of a line through points over the span of x (a single x: the mean of its values)."""
    line = PiecewiseLinear.through(points).points
    if len(line) == 1:
        return line[0][1]
    area = sum((x1 - x0) * (y0 + y1) / 2 for (x0, y0), (x1, y1) in pairwise(line))
    return area / (line[-1][0] - line[0][0])
