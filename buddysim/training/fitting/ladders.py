"""Ladders of plans: each rung holds less than the one before, and takes longer.

Neither the budget nor the host's memory changes a ladder. So a larger one never makes the lowest rung that fits a later
one: see `docs/explanation/fit.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from buddysim.training.fitting.assignment import Assignment
from buddysim.training.fitting.program_inputs import ProgramInputs


@dataclass(frozen=True)
class Ladder:
    """From one choice for all groups to another, group by group.

    Attributes
    ----------
    order : groups; those that free most for each part of the time come first
    before, after : choices
    """

    placement: int
    order: tuple[int, ...]
    before: int
    after: int

    @property
    def rungs(self) -> int:
        """Number of the last rung, on which all groups have changed; the first is 0."""
        return len(self.order)

    def at(self, rung: int) -> Assignment:
        """Return the plan in which so many groups have the later choice."""
        choices = [self.before] * len(self.order)
        for group in self.order[:rung]:
            choices[group] = self.after
        return Assignment(self.placement, tuple(choices))


def ladders(placement: int, inputs: ProgramInputs, *, with_copies: bool = True) -> list[Ladder]:
    """Return the ladders of a placement, those first that free most for each part of the time.

    Parameters
    ----------
    with_copies : ladders of choices that copy to the host too; time may fall on these where copies wait for each other
    """
    without = [one for one in range(inputs.choices) if not sum_of(inputs.pinned_bytes, one)]
    hulls = [_hull(without, inputs), *([_hull(range(inputs.choices), inputs)] if with_copies else [])]
    pairs = {pair for hull in hulls for pair in combinations(hull, 2)} if inputs.groups else set()
    ordered = sorted(pairs, key=lambda pair: (_price(inputs, *pair), pair))
    return [Ladder(placement, _order(inputs, *pair), *pair) for pair in ordered]


def sum_of(table: Sequence[Sequence[int]], choice: int) -> int:
    """Return what a choice for all groups comes to."""
    return sum(row[choice] for row in table)


def _hull(choices: Iterable[int], inputs: ProgramInputs) -> list[int]:
    """Choices below which no mixture of two others lies, by what all groups hold and take; the fastest first."""
    figures = {one: (sum_of(inputs.penalty_ps, one), sum_of(inputs.held_bytes, one)) for one in choices}
    hull: list[int] = []
    for choice in sorted(figures, key=lambda one: (figures[one], one)):
        if hull and figures[choice][1] >= figures[hull[-1]][1]:
            continue
        while len(hull) > 1 and _is_above(*(figures[one] for one in (hull[-2], hull[-1], choice))):
            hull.pop()
        hull.append(choice)
    return hull


def _is_above(first: tuple[int, int], middle: tuple[int, int], last: tuple[int, int]) -> bool:
    """Whether a point lies on or above the line between two others."""
    across, down = last[0] - first[0], last[1] - first[1]
    return (middle[1] - first[1]) * across >= (middle[0] - first[0]) * down


def _price(inputs: ProgramInputs, before: int, after: int) -> float:
    """Time for each byte that is freed."""
    freed = sum_of(inputs.held_bytes, before) - sum_of(inputs.held_bytes, after)
    return (sum_of(inputs.penalty_ps, after) - sum_of(inputs.penalty_ps, before)) / freed


def _order(inputs: ProgramInputs, before: int, after: int) -> tuple[int, ...]:
    """Groups by time for each byte that is freed; of equal ones, the first hold next to more gradients."""

    def price(group: int) -> tuple[bool, float, int, int]:
        held, spent = inputs.held_bytes[group], inputs.penalty_ps[group]
        freed = held[before] - held[after]
        return freed <= 0, (spent[after] - spent[before]) / freed if freed > 0 else 0.0, -freed, group

    return tuple(sorted(range(inputs.groups), key=price))
