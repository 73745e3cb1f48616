"""Plans that were simulated, each once."""

from __future__ import annotations

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
    limit : plans that are simulated at most in a search; schemes and plans of one choice come on top
    tried : every plan so far, in order
    """

    space: PlanSpace
    limit: int
    progress: Progress | None = None
    tried: list[TriedPlan] = field(default_factory=list)
    _known: dict[Assignment, TriedPlan] = field(default_factory=dict)
    _facts: dict[Assignment, GroupFacts] = field(default_factory=dict)

    @property
    def is_exhausted(self) -> bool:
        """Whether no more are to be tried."""
        return len(self.tried) >= self.limit

    def simulated(self, assignment: Assignment) -> TriedPlan:
        """Return an assignment's times and bytes."""
        if assignment not in self._known:
            self._known[assignment] = self._add(self.space.simulate(self.space.plan(assignment)), assignment)
        return self._known[assignment]

    def knows(self, assignment: Assignment) -> bool:
        """Whether it was simulated."""
        return assignment in self._known

    def facts(self, assignment: Assignment) -> GroupFacts:
        """Return the figures of an assignment's groups."""
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
        if self.progress is not None:
            self.progress(len(self.tried), made)
        return made


def _is_same(one: Plan, other: Plan) -> bool:
    """Whether two plans decide the same."""
    if one.as_recorded and other.as_recorded:
        scaled = (one.memory_ratio, one.time_factor) == (other.memory_ratio, other.time_factor)
        return scaled and one.saving == other.saving
    return replace(one, scheme="", notes=(), assumptions={}) == replace(other, scheme="", notes=(), assumptions={})
