"""The search for a plan: single schemes, plans of one choice, the integer program's, and steps from the best of these.

The integer program proposes; the timeline decides. It knows what groups hold at least, not what fragments and lives for
a short time: so its budget is lowered by what a proposal exceeds, until one fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from buddysim.base.errors import BuddysimError
from buddysim.training.fitting.assignment import Assignment
from buddysim.training.fitting.integer_program import min_memory, min_time
from buddysim.training.fitting.local_search import improve, try_the_rest
from buddysim.training.fitting.objective import FitObjective
from buddysim.training.fitting.plan_space import SINGLE_SCHEMES, PlanSpace
from buddysim.training.fitting.program_inputs import ProgramInputs, program_inputs
from buddysim.training.fitting.tried_plans import Progress, TriedPlan, TriedPlans

#: Plans of a placement, all of which may be tried.
_SMALL = 1 << 12
#: A plan that is this near to the bound is the best.
_NEAR = 1e-4
#: Plans from which steps are taken in each placement.
STARTS = 2
#: Proposals of the integer program for one placement, at most.
_PROPOSALS = 5


@dataclass(frozen=True)
class FitBounds:
    """What no plan of the space undercuts.

    Attributes
    ----------
    time_ps : within the budget; None where no plan fits
    memory_bytes : of any plan, with what libraries and the process take
    """

    time_ps: int | None
    memory_bytes: int


@dataclass(frozen=True)
class SearchResult:
    """The result of a search.

    Attributes
    ----------
    best : the answer; where it doesn't fit, the plan that misses by the least
    plain : what the framework does by itself
    singles : single schemes that are simulated with the request's options, by name
    tried : every plan that was simulated, in order
    stopped : the user stopped the search
    """

    best: TriedPlan
    plain: TriedPlan
    singles: dict[str, TriedPlan]
    tried: Sequence[TriedPlan]
    bounds: FitBounds
    stopped: bool = False


class PlanSearch:
    """One search.

    Parameters
    ----------
    budget : bytes of GPU memory
    slowdown : the largest part by which the fastest plan may take longer, where the least memory is looked for
    limit : plans that are simulated at most, next to single schemes and plans of one choice; None: as many as such a
        network takes seconds for
    """

    def __init__(
        self,
        space: PlanSpace,
        budget: int,
        *,
        slowdown: float | None = None,
        limit: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.space, self.slowdown = space, slowdown
        self.offered = budget - space.unavailable_bytes()
        self.host_budget = space.machine.max_pinned_bytes
        self.limit = space.tries if limit is None else limit
        self.plans = TriedPlans(space, self.limit, progress)
        self.singles: dict[str, TriedPlan] = {}
        self.inputs: list[ProgramInputs] = []
        self.objective = FitObjective()
        self.bounds: FitBounds | None = None

    def run(self) -> SearchResult:
        """Search; what was search so far where the user interrupts it, once single schemes are simulated."""
        stopped = False
        self._simulate_basis()
        try:
            self._search()
        except KeyboardInterrupt:
            stopped = True
        best = min(self.plans.tried, key=self.objective.rank)
        assert self.bounds is not None
        return SearchResult(best, self._plain(), self.singles, tuple(self.plans.tried), self.bounds, stopped)

    def _plain(self) -> TriedPlan:
        return self.singles.get("eager", self.plans.tried[0])

    def _uniform(self, placement: int, choice: int) -> Assignment:
        return Assignment(placement, (choice,) * len(self.space.groups))

    def _simulate_basis(self) -> None:
        """Simulate each choice for all groups, each placement, and single schemes."""
        plans, space = self.plans, self.space
        uniform = {}
        for choice in range(len(space.choices)):
            try:
                facts = plans.facts(self._uniform(0, choice))
            except BuddysimError:
                if not choice:
                    raise
                continue
            uniform[choice] = facts, plans.simulated(self._uniform(0, choice)).time_ps
        for number in range(len(space.placements)):
            retained = self._uniform(number, 0)
            facts, times = plans.facts(retained), (plans.simulated(retained).time_ps, uniform[0][1])
            self.inputs.append(program_inputs(facts, uniform, space.choices, times,
                                              early=space.early, serial_copies=space.serial_copies))  # fmt: skip
        for name in SINGLE_SCHEMES:
            try:
                plan = space.scheme_plan(name)
            except BuddysimError:
                continue
            if not plan.nothing_to_do:
                self.singles[name] = plans.scheme(name, plan)
        if self.slowdown is not None:
            fastest = min(one.time_ps for one in plans.tried)
            self.objective = FitObjective(round(fastest * (1 + self.slowdown)))
        plans.limit = len(plans.tried) + self.limit
        self.bounds = self._bounds()

    def _bounds(self) -> FitBounds:
        memory = min(min_memory(one, None).bound or 0 for one in self.inputs)
        times = [min_time(one, self.offered, expected=False).bound for one in self.inputs]
        return FitBounds(
            min((one for one in times if one is not None), default=None),
            memory + self.space.unavailable_bytes(),
        )

    def _search(self) -> None:
        """Search each placement, the one that promises most first, as long as it may beat the best plan so far."""
        lower = {number: min_time(one, self.offered, expected=False).bound for number, one in enumerate(self.inputs)}
        order = sorted((bound, number) for number, bound in lower.items() if bound is not None)
        for bound, number in order:
            if self.inputs[number].host_bytes > self.host_budget:
                continue
            best = min(self.plans.tried, key=self.objective.rank)
            if self.objective.limit_ps is None and best.fits and best.time_ps <= bound * (1 + _NEAR):
                continue
            self._search_placement(number)
        if not any(one.fits for one in self.plans.tried):
            self._look_for_least()

    def _search_placement(self, number: int) -> None:
        inputs, objective = self.inputs[number], self.objective
        self._propose(number)
        own = [one for one in self.plans.tried
               if one.assignment is not None and one.assignment.placement == number]  # fmt: skip
        for start in sorted(own, key=objective.rank)[:STARTS]:
            if start.fits and objective.limit_ps is None and start.time_ps <= inputs.simulated_ps:
                return  # as fast as the plan that keeps everything
            improve(start, self.plans, inputs, objective, self.offered)
        if objective.limit_ps is None and inputs.choices**inputs.groups <= _SMALL:
            best = min(self.plans.tried, key=objective.rank)
            try_the_rest(best, self.plans, inputs, self.offered, number)

    def _propose(self, number: int) -> None:
        """Simulate what the integer program proposes, with a lower budget as long as that doesn't fit."""
        inputs, budget = self.inputs[number], self.offered
        for _ in range(_PROPOSALS):
            if self.objective.limit_ps is not None:
                answer = min_memory(inputs, self.objective.limit_ps)
            else:
                answer = min_time(inputs, budget, expected=True, host_budget=self.host_budget)
            if answer.choices is None or self.plans.is_exhausted:
                return
            made = inputs.ordered(Assignment(number, answer.choices))
            tried = self.plans.simulated(made)
            if tried.fits or self.objective.limit_ps is not None:
                return
            budget = min(budget, inputs.memory_bytes(made.choices)) - max(tried.shortfall_bytes, 1)

    def _look_for_least(self) -> None:
        """Simulate the plans of least memory, so that what is missing is known."""
        for number, inputs in enumerate(self.inputs):
            answer = min_memory(inputs, None)
            if answer.choices is not None:
                self.plans.simulated(inputs.ordered(Assignment(number, answer.choices)))
