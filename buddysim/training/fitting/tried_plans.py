"""Plans that were simulated, each once."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import ceil
from typing import TYPE_CHECKING

from buddysim.training.fitting.assignment import Assignment
from buddysim.training.fitting.facts import GroupFacts
from buddysim.training.fitting.plan_space import PlanSpace

if TYPE_CHECKING:
    from buddysim.training.iteration.plan import Plan
    from buddysim.training.outcome import IterationOutcome

#: Plans of which the records, which refer to themselves, may be in memory at once.
_COLLECTED = 16
#: Says what was simulated: how many plans so far, and the newest.
Progress = Callable[[int, "TriedPlan"], None]


@dataclass(frozen=True)
class TriedPlan:
    """A simulated plan.

    Attributes
    ----------
    assignment : None of a single scheme's own plan
    scheme : name of the scheme whose plan it is; "" of a mixture
    peak_bytes : of tensors
    used_bytes : that the GPU needs for them, with fragmentation, libraries and context
    pinned_bytes : of host memory
    fits : within the budget and the host's memory
    shortfall_bytes : by which it doesn't
    """

    assignment: Assignment | None
    scheme: str
    time_ps: int
    peak_bytes: int
    used_bytes: int
    pinned_bytes: int
    fits: bool
    shortfall_bytes: int


@dataclass
class TriedPlans:
    """Simulates plans of a space.

    Attributes
    ----------
    tried : every plan so far, in order
    basis : plans of one choice, of every search
    exceeding : further plans, whose tensors don't fit
    """

    space: PlanSpace
    progress: Progress | None = None
    tried: list[TriedPlan] = field(default_factory=list)
    basis: set[Assignment] = field(default_factory=set)
    exceeding: set[Assignment] = field(default_factory=set)
    _known: dict[Assignment, TriedPlan] = field(default_factory=dict)
    _facts: dict[Assignment, GroupFacts] = field(default_factory=dict)

    def fastest_ps(self) -> float:
        """Return the least time of a plan that fits; infinity where none does."""
        return min((one.time_ps for one in self.tried if one.fits), default=math.inf)

    def simulated(self, assignment: Assignment) -> TriedPlan:
        """Return an assignment's times and bytes."""
        if assignment not in self._known:
            self._known[assignment] = self._add(self.space.simulate(self.space.plan(assignment)), assignment)
        return self._known[assignment]

    def fits(self, assignment: Assignment) -> bool:
        """Whether an assignment fits; one that doesn't need not be simulated whole."""
        if assignment in self.exceeding:
            return False
        if assignment not in self._known and self.space.exceeds(self.space.plan(assignment)):
            self.exceeding.add(assignment)
            return False
        return self.simulated(assignment).fits

    def facts(self, assignment: Assignment) -> GroupFacts:
        """Return the figures of a plan of one choice, by group."""
        self.basis.add(assignment)
        if assignment not in self._facts:
            outcome = self.space.simulate(self.space.plan(assignment))
            self._facts[assignment] = self.space.facts(assignment, outcome)
            if assignment not in self._known:
                self._known[assignment] = self._add(outcome, assignment)
        return self._facts[assignment]

    def scheme(self, name: str, plan: Plan) -> TriedPlan:
        """Return a single scheme's times and bytes."""
        for assignment, known in self._known.items():
            if _is_same(self.space.plan(assignment), plan):
                return replace(known, scheme=name)
        return self._add(self.space.simulate(plan), None, name)

    def _add(self, outcome: IterationOutcome, assignment: Assignment | None, scheme: str = "") -> TriedPlan:
        caching, short = outcome.placement.caching, outcome.out_of_memory
        peak = outcome.all_layers.usage.peak_bytes
        held, outside = (peak, 0) if caching is None else (outcome.placement.high_water, caching.outside_bytes)
        used = ceil(held / outcome.plan.memory_ratio) + outside
        missing = 0 if short is None else max(1, short.peak_excess_bytes, short.failure.shortfall_bytes)
        made = TriedPlan(assignment, scheme, outcome.time_ps, peak, used, outcome.pinned_bytes, outcome.fits, missing)
        self.tried.append(made)
        if not len(self.tried) % _COLLECTED:
            gc.collect()
        if self.progress is not None:
            self.progress(len(self.tried), made)
        return made


def _is_same(one: Plan, other: Plan) -> bool:
    """Whether two plans decide the same."""
    if one.as_recorded and other.as_recorded:
        scaled = (one.memory_ratio, one.time_factor) == (other.memory_ratio, other.time_factor)
        return scaled and one.saving == other.saving
    return replace(one, scheme="", notes=(), assumptions={}) == replace(other, scheme="", notes=(), assumptions={})
