"""Which snapshots stay when there are more than were wanted: those nearest to equal distances."""

from __future__ import annotations

from collections.abc import Sequence


def equally_spaced(positions: Sequence[int], total: int, wanted: int) -> list[int]:
    """Indices of `wanted` of the ascending `positions`, nearest to 1, 2, ... times `total` / `wanted`.

    Parameters
    ----------
    positions : where snapshots were taken, in calls or nanoseconds
    total : the length of the run so far, in the same unit
    wanted : how many may stay; all do where there are no more
    """
    if len(positions) <= wanted:
        return list(range(len(positions)))
    chosen: list[int] = []
    for turn in range(1, wanted + 1):
        first = chosen[-1] + 1 if chosen else 0
        end = len(positions) - (wanted - turn)
        target = turn * total
        chosen.append(min(range(first, end), key=lambda index: abs(positions[index] * wanted - target)))
    return chosen
