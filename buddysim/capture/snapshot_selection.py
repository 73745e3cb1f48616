"""Which snapshots stay when there are more than were wanted: those nearest to equal distances."""

from __future__ import annotations

from collections.abc import Sequence


def over_the_run(points: Sequence[int], total: int, wanted: int) -> list[int]:
    """Indices of the points nearest to 1, 2, ... times ``total / wanted``.

    Parameters
    ----------
    points : where snapshots were taken, ascending, in calls, nanoseconds or iterations
    total : the length of the run so far, in the same unit
    wanted : how many may stay; all do where there are no more
    """
    if len(points) <= wanted:
        return list(range(len(points)))
    return _nearest(points, [turn * total for turn in range(1, wanted + 1)], wanted)


def from_first_to_last(points: Sequence[int], wanted: int) -> list[int]:
    """Indices of the first point, the last, and those nearest to equal distances between them.

    Parameters
    ----------
    points : where snapshots were taken, ascending
    wanted : how many may stay; all do where there are no more; of one alone it is the last
    """
    if len(points) <= wanted:
        return list(range(len(points)))
    if wanted == 1:
        return [len(points) - 1]
    first, distance = points[0] * (wanted - 1), points[-1] - points[0]
    return _nearest(points, [first + turn * distance for turn in range(wanted)], wanted - 1)


def _nearest(points: Sequence[int], targets: Sequence[int], scale: int) -> list[int]:
    """For each target its nearest point, each point once and in order; targets are `scale` times as large as points."""
    chosen: list[int] = []
    for turn, target in enumerate(targets):
        first = chosen[-1] + 1 if chosen else 0
        end = len(points) - (len(targets) - turn - 1)
        chosen.append(min(range(first, end), key=lambda index: abs(points[index] * scale - target)))
    return chosen
