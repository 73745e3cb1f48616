"""Linear interpolation between points."""

from __future__ import annotations

from collections.abc import Sequence


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
    upper = next((n for n in range(1, len(points)) if at <= points[n][0]), len(points) - 1)
    (x0, y0), (x1, y1) = points[upper - 1], points[upper]
    return y0 + (y1 - y0) * (at - x0) / (x1 - x0)
