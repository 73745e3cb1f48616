"""Linear interpolation between points."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from operator import itemgetter


def interpolate(points: Sequence[tuple[float, float]], at: float, beyond: bool = True) -> float:
    """Return the value at a position, linear between ascending points.

    Parameters
    ----------
    points : position and value, ascending
    beyond : outside the points, True extends the nearest line; False takes the nearest point's value
    """
    if len(points) == 1 or (not beyond and at <= points[0][0]):
        return points[0][1]
    if not beyond and at >= points[-1][0]:
        return points[-1][1]
    upper = bisect_left(points, at, 1, len(points) - 1, key=itemgetter(0))
    (x0, y0), (x1, y1) = points[upper - 1], points[upper]
    return y0 + (y1 - y0) * (at - x0) / (x1 - x0)
