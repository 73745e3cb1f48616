"""One plan of a space: a placement, and a choice for each group."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple


class Assignment(NamedTuple):
    """Positions in a space's placements and choices.

    Attributes
    ----------
    placement : of optimizer and weights
    choices : of each group, in order
    """

    placement: int
    choices: tuple[int, ...]

    def runs(self) -> Iterator[tuple[int, int, int]]:
        """First and last group of each run of equal choices, and the choice."""
        first = 0
        for choice, run in groupby(self.choices):
            last = first + len(list(run)) - 1
            yield first, last, choice
            first = last + 1

    def with_choice(self, group: int, choice: int) -> Assignment:
        """Return it with another choice for one group."""
        return self._replace(choices=(*self.choices[:group], choice, *self.choices[group + 1 :]))
