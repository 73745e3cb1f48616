"""The local search at a budget: plans next to the best one, each simulated, until none is better.

A step changes the choice of a number of equal groups, and may change that of others in exchange. Steps are tried in the
order of what they are expected to give; a step that isn't expected to be better, or to fit, isn't tried. What is
found depends on the budget of the search alone, not on that of the question, nor on the host's memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

from buddysim.training.fitting.assignment import Assignment
from buddysim.training.fitting.integer_program import min_time
from buddysim.training.fitting.mixed_program import Solver
from buddysim.training.fitting.program_inputs import ProgramInputs
from buddysim.training.fitting.tried_plans import TriedPlan, TriedPlans

#: Plans from which steps are taken.
_STARTS = 2
#: Proposals of the integer program, at most.
_PROPOSALS = 5


class _Move(NamedTuple):
    """How many groups of a class change their choice, from one to another."""

    members: tuple[int, ...]
    before: int
    after: int


@dataclass
class LocalSearch:
    """One search, of networks whose plans need what their tensors take at once.

    Attributes
    ----------
    budget : bytes of GPU memory
    limit : plans that are tried at most
    solve : solves the integer programs
    """

    placement: int
    plans: TriedPlans
    inputs: ProgramInputs
    budget: int
    limit: int
    solve: Solver
    _tried: dict[Assignment, TriedPlan] = field(default_factory=dict)

    def run(self) -> None:
        """Try what the integer program proposes, and steps from the best of these and of plans of one choice."""
        for choice in range(self.inputs.choices):
            uniform = Assignment(self.placement, (choice,) * self.inputs.groups)
            if uniform in self.plans.basis:
                self._tried[uniform] = self.plans.simulated(uniform)
        self.limit += len(self._tried)
        self._propose()
        for start in sorted(self._tried.values(), key=self._rank)[:_STARTS]:
            self._improve(start)

    def _try(self, assignment: Assignment) -> TriedPlan:
        self._tried[assignment] = self.plans.simulated(assignment)
        return self._tried[assignment]

    @property
    def _is_exhausted(self) -> bool:
        return len(self._tried) >= self.limit

    def _missing(self, one: TriedPlan) -> int:
        return max(0, one.used_bytes - self.budget)

    def _rank(self, one: TriedPlan) -> tuple[object, ...]:
        return self._missing(one), one.time_ps, one.used_bytes, one.assignment

    def _propose(self) -> None:
        """Try proposals of the integer program, with a lower budget as long as they don't fit."""
        budget = self.budget
        for _ in range(_PROPOSALS):
            answer = min_time(self.inputs, budget, self.solve, expected=True)
            if answer.choices is None or self._is_exhausted:
                return
            made = self.inputs.ordered(Assignment(self.placement, answer.choices))
            missing = self._missing(self._try(made))
            if not missing:
                return
            budget = min(budget, self.inputs.memory_bytes(made.choices)) - missing

    def _improve(self, start: TriedPlan) -> None:
        """Take steps until none is better."""
        best: TriedPlan | None = start
        while best is not None:
            best = self._next(best, surely=True) or self._next(best, surely=False)

    def _next(self, best: TriedPlan, *, surely: bool) -> TriedPlan | None:
        """Return the first neighbour that is better; None where none is.

        Parameters
        ----------
        surely : those that are expected to be better, not all that the bounds don't rule out
        """
        assert best.assignment is not None
        own, most = self.inputs.memory_bytes(best.assignment.choices), self.budget
        for neighbour, holds in self._neighbours(best, surely):
            if self._is_exhausted:
                return None
            if surely and not self._missing(best) and holds > most:
                continue
            tried = self._try(neighbour)
            if self._rank(tried) < self._rank(best):
                return tried
            if self._missing(tried):  # what lives for a short time comes on top
                most = min(most, max(holds - self._missing(tried), own))
        return None

    def _neighbours(self, best: TriedPlan, surely: bool) -> list[tuple[Assignment, int]]:
        """Assignments that may be better, and the bytes that they hold, the best one first; none twice."""
        assert best.assignment is not None
        own, inputs = best.assignment, self.inputs
        memory, time = inputs.memory_bytes(own.choices), inputs.expected_ps(own.choices)
        ranked: dict[Assignment, tuple[int, int]] = {}
        for made in _changed(own, inputs):
            if made in ranked or made in self._tried:
                continue
            takes, holds = inputs.expected_ps(made.choices), inputs.memory_bytes(made.choices)
            if self._missing(best):
                is_promising, key = holds < memory, (holds, takes)
            else:
                is_faster = takes < time if surely else inputs.bound_ps(made.choices) < best.time_ps
                is_promising, key = holds <= self.budget and is_faster, (takes, holds)
            if is_promising:
                ranked[made] = key
        memory_at = 0 if self._missing(best) else 1
        return [(one, ranked[one][memory_at]) for one in sorted(ranked, key=lambda one: (*ranked[one], one))]


def try_every_plan(plans: TriedPlans, inputs: ProgramInputs, budget: int, placement: int) -> None:
    """Simulate all plans of a small network that the bounds don't rule out, the fastest first."""
    left = [
        (inputs.expected_ps(choices), choices)
        for choices in product(range(inputs.choices), repeat=inputs.groups)
        if inputs.memory_bytes(choices) <= budget
    ]
    for _, choices in sorted(left):
        if inputs.bound_ps(choices) < plans.fastest_ps():
            plans.fits(Assignment(placement, choices))


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
