"""Aligns two sequences of names that are nearly equal: those of a predicted and of a measured step.

Both follow the same program, so names match one by one, except where one has an operator that the other lacks. There
the alignment looks for the nearest position at which a few names in a row match again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

#: Operators that one of the sequences may have alone, in a row.
WINDOW = 60

#: Names in a row that must match where the sequences meet again.
_IN_A_ROW = 3


def aligned(one: Sequence[str], other: Sequence[str]) -> Iterator[tuple[int | None, int | None]]:
    """Yield the positions that belong together, in order; None for what only one of the sequences has."""
    first, second = 0, 0
    while first < len(one) and second < len(other):
        if one[first] == other[second]:
            yield first, second
            first, second = first + 1, second + 1
            continue
        skipped = _nearest(one, first, other, second)
        for position in range(first, first + skipped[0]):
            yield position, None
        for position in range(second, second + skipped[1]):
            yield None, position
        first, second = first + skipped[0], second + skipped[1]
    for position in range(first, len(one)):
        yield position, None
    for position in range(second, len(other)):
        yield None, position


def _nearest(one: Sequence[str], first: int, other: Sequence[str], second: int) -> tuple[int, int]:
    """How many names to pass over in each; one of each where nothing near matches."""
    for total in range(1, WINDOW + 1):
        for skipped in range(total + 1):
            first_position, second_position = first + skipped, second + total - skipped
            if _match(one, first_position, other, second_position):
                return skipped, total - skipped
    return 1, 1


def _match(one: Sequence[str], first_position: int, other: Sequence[str], second_position: int) -> bool:
    if first_position >= len(one) or second_position >= len(other):
        return False
    length = min(_IN_A_ROW, len(one) - first_position, len(other) - second_position)
    return list(one[first_position : first_position + length]) == list(
        other[second_position : second_position + length]
    )
