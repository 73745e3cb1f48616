"""The local search: plans next to the best one, each simulated, until none is better.

A step changes the choice of a number of equal groups, and may change that of others in exchange. Steps are tried in the
order of what they are expected to give; a step that isn't expected to be better, or to fit, isn't tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from buddysim.training.fitting.assignment import Assignment
from buddysim.training.fitting.objective import FitObjective
from buddysim.training.fitting.program_inputs import ProgramInputs
from buddysim.training.fitting.tried_plans import TriedPlan, TriedPlans


class _Move(NamedTuple):
    """How many groups of a class change their choice, from one to another."""

    members: tuple[int, ...]
    before: int
    after: int


def improve(
    start: TriedPlan, plans: TriedPlans, inputs: ProgramInputs, objective: FitObjective, budget: int
) -> TriedPlan:
    """Return the best plan that steps from one lead to.

    Parameters
    ----------
    budget : bytes of GPU memory that tensors may take
    """
    best: TriedPlan | None = start
    while best is not None:
        start = best
        best = _next(start, plans, inputs, objective, budget) or _next(
            start, plans, inputs, objective, budget, surely=False
        )
    return start


def _next(
    best: TriedPlan,
    plans: TriedPlans,
    inputs: ProgramInputs,
    objective: FitObjective,
    budget: int,
    *,
    surely: bool = True,
) -> TriedPlan | None:
    """Return the first neighbour that is better; None where none is.

    Parameters
    ----------
    surely : those that are expected to be better, not all that the bounds don't rule out
    """
    assert best.assignment is not None
    own, most = inputs.memory_bytes(best.assignment.choices), budget
    for neighbour, holds in _neighbours(best, plans, inputs, objective, budget, surely):
        if plans.is_exhausted:
            return None
        if surely and best.fits and holds > most:
            continue
        tried = plans.simulated(neighbour)
        if objective.rank(tried) < objective.rank(best):
            return tried
        if not tried.fits:  # what fragments, and lives for a short time, comes on top
            most = min(most, max(holds - tried.shortfall_bytes, own))
    return None


def _neighbours(
    best: TriedPlan,
    plans: TriedPlans,
    inputs: ProgramInputs,
    objective: FitObjective,
    budget: int,
    surely: bool,
) -> list[tuple[Assignment, int]]:
    """Assignments that may be better, and the bytes that they hold, the best one first; none twice."""
    assert best.assignment is not None
    own = best.assignment
    memory, time = inputs.memory_bytes(own.choices), inputs.expected_ps(own.choices)
    most = budget if best.fits and objective.limit_ps is None else max(budget, memory)
    ranked: dict[Assignment, tuple[int, int]] = {}
    for made in _changed(own, inputs):
        if made in ranked or plans.knows(made):
            continue
        takes, holds = inputs.expected_ps(made.choices), inputs.memory_bytes(made.choices)
        if objective.limit_ps is not None:
            is_promising = holds < memory and takes <= objective.limit_ps
            key = (holds, takes)
        elif best.fits:
            is_promising = holds <= most and (takes < time if surely else inputs.bound_ps(made.choices) < best.time_ps)
            key = (takes, holds)
        else:
            is_promising = holds < memory
            key = (holds, takes)
        if is_promising:
            ranked[made] = key
    memory_at = 1 if objective.limit_ps is None and best.fits else 0
    return [(one, ranked[one][memory_at]) for one in sorted(ranked, key=lambda one: (*ranked[one], one))]


def try_the_rest(best: TriedPlan, plans: TriedPlans, inputs: ProgramInputs, budget: int, placement: int) -> TriedPlan:
    """Simulate all plans of a small network that the bounds don't rule out, the fastest first; return the best."""
    objective = FitObjective()
    left = [
        (inputs.expected_ps(choices), choices)
        for choices in product(range(inputs.choices), repeat=inputs.groups)
        if inputs.memory_bytes(choices) <= budget
    ]
    for _, choices in sorted(left):
        if plans.is_exhausted:
            break
        if not best.fits or inputs.bound_ps(choices) < best.time_ps:
            best = min(best, plans.simulated(Assignment(placement, choices)), key=objective.rank)
    return best


def _changed(own: Assignment, inputs: ProgramInputs) -> Iterator[Assignment]:
    """Every step from an assignment."""
    moves = list(_moves(own, inputs))
    for move in moves:
        yield _apply(own, inputs, (move,))
    single = [move for move in moves if len(move.members) == 1]
    for first in single:
        for second in single:
            if first.members[0] < second.members[0]:
                yield _apply(own, inputs, (first, second))


def _moves(own: Assignment, inputs: ProgramInputs) -> Iterator[_Move]:
    for members in inputs.classes():
        for before in range(inputs.choices):
            alike = [one for one in members if own.choices[one] == before]
            for after in range(inputs.choices):
                count = len(alike)
                while alike and after != before and count:
                    yield _Move(tuple(alike[:count]), before, after)
                    count //= 2


def _apply(own: Assignment, inputs: ProgramInputs, moves: tuple[_Move, ...]) -> Assignment:
    choices = list(own.choices)
    for move in moves:
        for group in move.members:
            choices[group] = move.after
    return inputs.ordered(own._replace(choices=tuple(choices)))
