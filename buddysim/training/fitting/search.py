"""The search for a plan: single schemes, plans of one choice, ladders of plans, and plans next to their rungs.

What is simulated depends on the budget only by bounds that rule plans out for certain. So the answer at a larger budget
is never slower: `docs/explanation/fit.md` shows why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from buddysim.base.errors import BuddysimError
from buddysim.base.garbage import collection_paused
from buddysim.training.fitting.assignment import Assignment
from buddysim.training.fitting.integer_program import budgets_of, min_memory, min_time
from buddysim.training.fitting.ladder_search import fastest_rung, smallest_rung, try_steps
from buddysim.training.fitting.ladders import Ladder, ladders
from buddysim.training.fitting.local_search import LocalSearch, try_every_plan
from buddysim.training.fitting.mixed_program import Solver, solve_with_scipy
from buddysim.training.fitting.objective import FitObjective
from buddysim.training.fitting.plan_space import SINGLE_SCHEMES, PlanSpace
from buddysim.training.fitting.program_inputs import ProgramInputs, program_inputs
from buddysim.training.fitting.tried_plans import Progress, TriedPlan, TriedPlans

#: Plans of a placement, all of which are tried.
_SMALL = 1 << 12


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
    too_large : how many more were tried, whose tensors don't fit
    stopped : the user stopped the search
    """

    best: TriedPlan
    plain: TriedPlan
    singles: dict[str, TriedPlan]
    tried: Sequence[TriedPlan]
    bounds: FitBounds
    too_large: int = 0
    stopped: bool = False


class PlanSearch:
    """One search.

    Parameters
    ----------
    budget : bytes of GPU memory
    slowdown : the largest part by which the fastest plan may take longer, where the least memory is looked for
    steps : plans that are simulated at most next to each ladder; None: as many as such a network takes seconds for
    solve : solves the integer programs
    """

    def __init__(
        self,
        space: PlanSpace,
        budget: int,
        *,
        slowdown: float | None = None,
        steps: int | None = None,
        progress: Progress | None = None,
        solve: Solver = solve_with_scipy,
    ) -> None:
        self.space, self.slowdown, self.solve = space, slowdown, solve
        self.offered = budget - space.unavailable_bytes()
        self.host_budget = space.machine.max_pinned_bytes
        self.steps = space.tries if steps is None else steps
        self.plans = TriedPlans(space, progress)
        self.singles: dict[str, TriedPlan] = {}
        self.inputs: list[ProgramInputs] = []
        self.lower_ps: list[int | None] = []
        self.objective = FitObjective()
        self.bounds = FitBounds(None, 0)

    @collection_paused()
    def run(self) -> SearchResult:
        """Search; where the user interrupts it, return what was found so far."""
        stopped = False
        try:
            self._simulate_basis()
            self._search()
        except KeyboardInterrupt:
            stopped = True
            if not self.plans.tried:
                raise
        best = min(self.plans.tried, key=self.objective.rank)
        return SearchResult(
            best, self._plain(), self.singles, tuple(self.plans.tried), self.bounds, len(self.plans.exceeding), stopped
        )  # fmt: skip

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
        self.bounds = self._bounds()

    def _bounds(self) -> FitBounds:
        memory = min(min_memory(one, None, self.solve).bound or 0 for one in self.inputs)
        self.lower_ps = [min_time(one, self.offered, self.solve, expected=False).bound for one in self.inputs]
        return FitBounds(
            min((one for one in self.lower_ps if one is not None), default=None),
            memory + self.space.unavailable_bytes(),
        )

    def _search(self) -> None:
        """Search each placement, and look for what is missing where no plan fits."""
        for number, inputs in enumerate(self.inputs):
            if self._is_open(number):
                self._search_placement(number, inputs)
        if not any(one.fits for one in self.plans.tried):
            self._look_for_least()

    def _is_open(self, number: int) -> bool:
        """Whether a placement may have a plan that is better than the best so far."""
        inputs = self.inputs[number]
        if inputs.host_bytes > self.host_budget:
            return False
        if self.objective.limit_ps is not None:
            return True
        bound = self.lower_ps[number]
        return bound is not None and bound < self.plans.fastest_ps()

    def _search_placement(self, number: int, inputs: ProgramInputs) -> None:
        """Search all ladders, and plans next to them; or at each budget."""
        is_by_budget = self.space.counts_live_tensors and self.objective.limit_ps is None
        partial: list[tuple[Ladder, int]] = []
        for ladder in ladders(number, inputs, with_copies=not is_by_budget):
            rung = self._rung(ladder, inputs)
            if rung is not None:
                partial.append((ladder, rung))
        if is_by_budget:
            self._search_budgets(number, inputs)
            return
        self._propose(number, inputs)
        for ladder, rung in partial:
            try_steps(ladder, rung, self.plans, inputs, self.offered, self.objective, self.steps)

    def _propose(self, number: int, inputs: ProgramInputs) -> None:
        """Try what the integer program proposes: for each budget, or for the longest time."""
        if self.objective.limit_ps is not None:
            answers = [min_memory(inputs, self.objective.limit_ps, self.solve)]
        else:
            answers = [
                min_time(inputs, one, self.solve, expected=True) for one in budgets_of(inputs, self.space.budgets)
            ]
        for answer in answers:
            if answer.choices is None:
                continue
            made = inputs.ordered(Assignment(number, answer.choices))
            holds, bound = inputs.memory_bytes(made.choices), inputs.bound_ps(made.choices)
            if self.objective.limit_ps is not None:
                self.plans.simulated(made)
            elif holds <= self.offered and bound < self.plans.fastest_ps():
                self.plans.fits(made)

    def _search_budgets(self, number: int, inputs: ProgramInputs) -> None:
        """Search at budgets of a fixed series, the largest first; try all plans of a small network."""
        if inputs.choices**inputs.groups <= _SMALL:
            try_every_plan(self.plans, inputs, self.offered, number)
            return
        for budget in reversed(budgets_of(inputs, self.space.budgets)):
            if budget > self.offered:
                continue
            bound = min_time(inputs, budget, self.solve, expected=False).bound
            if bound is None or bound >= self.plans.fastest_ps():
                return
            LocalSearch(number, self.plans, inputs, budget, self.steps, self.solve).run()

    def _rung(self, ladder: Ladder, inputs: ProgramInputs) -> int | None:
        if self.objective.limit_ps is not None:
            return smallest_rung(ladder, self.plans, inputs, self.objective.limit_ps)
        return fastest_rung(ladder, self.plans, inputs, self.offered)

    def _look_for_least(self) -> None:
        """Simulate the plans of least memory, so that what is missing is known."""
        for number, inputs in enumerate(self.inputs):
            answer = min_memory(inputs, None, self.solve)
            if answer.choices is not None:
                self.plans.simulated(inputs.ordered(Assignment(number, answer.choices)))
