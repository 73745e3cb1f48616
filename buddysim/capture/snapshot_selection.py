"""Selection of snapshots if there are more than requested: those nearest to equal distances."""

from __future__ import annotations

from collections.abc import Sequence


def select_over_run(points: Sequence[int], total: int, count: int) -> list[int]:
    """Indices of the points nearest to 1, 2, ... times ``total / count``.

    Parameters
    ----------
    points : where snapshots were taken, ascending, in calls, nanoseconds or iterations
    total : the length of the run so far, in the same unit
    count : snapshots to keep; all of them if there are no more
    """
    if len(points) <= count:
        return list(range(len(points)))
    return _select_nearest(points, [number * total for number in range(1, count + 1)], count)


def select_first_to_last(points: Sequence[int], count: int) -> list[int]:
    """Indices of the first point, the last, and those nearest to equal distances between them.

    Parameters
    ----------
    points : where snapshots were taken, ascending
    count : snapshots to keep; all of them if there are no more; 1: the last one
    """
    if len(points) <= count:
        return list(range(len(points)))
    if count == 1:
        return [len(points) - 1]
    first, distance = points[0] * (count - 1), points[-1] - points[0]
    return _select_nearest(points, [first + number * distance for number in range(count)], count - 1)


def _select_nearest(points: Sequence[int], targets: Sequence[int], scale: int) -> list[int]:
    """The nearest point to each target, each point once, ascending; targets are `scale` times as large as points."""
    selected: list[int] = []
    for number, target in enumerate(targets):
        first = selected[-1] + 1 if selected else 0
        end = len(points) - (len(targets) - number - 1)
        selected.append(min(range(first, end), key=lambda index: abs(points[index] * scale - target)))
    return selected
