"""The answer of a search: the plan, what it costs, and how much better any other plan could be."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from buddysim.training.fitting.torch_policy import policy_text
from buddysim.training.fitting.tried_plans import TriedPlan
from buddysim.training.plans.plan_file import plan_text
from buddysim.training.result import PS_PER_MS, TrainingResult

if TYPE_CHECKING:
    from buddysim.training.fitting.facts import GroupFacts
    from buddysim.training.fitting.plan_space import PlanSpace
    from buddysim.training.fitting.search import SearchResult
    from buddysim.training.outcome import IterationOutcome


class PlanRow(NamedTuple):
    """Consecutive groups with the same choice.

    Attributes
    ----------
    first, last : numbers of the groups
    names : of the first and the last one
    held_bytes : that stay on the GPU from the forward to the backward pass, of all together
    kernels_ps : of the second forward pass
    link_ps : of copies in both directions
    """

    first: int
    last: int
    names: tuple[str, str]
    choice: str
    held_bytes: int
    kernels_ps: int
    link_ps: int


@dataclass(frozen=True, repr=False)
class FitResult:
    """A plan that fits, or the one that misses by the least.

    Attributes
    ----------
    result : of the plan, as `train --plan` gives it
    plain : of the framework without a plan
    budget_bytes : of GPU memory
    placement : where optimizer and weights lie
    rows : the plan by group range; of a single scheme's own plan none
    scheme : name of the scheme where its own plan is the best; "" of a mixture
    search : all that was simulated, and the bounds
    """

    result: TrainingResult
    plain: TrainingResult
    budget_bytes: int
    placement: str
    rows: tuple[PlanRow, ...]
    scheme: str
    search: SearchResult = field(compare=False)
    space: PlanSpace = field(compare=False)

    def __repr__(self) -> str:
        """One line."""
        return f"<FitResult {'fits' if self.fits else 'does not fit'}: {self.result!r}>"

    @property
    def fits(self) -> bool:
        """Whether the plan fits."""
        return bool(self.result.counters["fits"])

    @property
    def outcome(self) -> IterationOutcome:
        """The simulated iteration."""
        return self.result.outcome

    @property
    def excess(self) -> float | None:
        """By which part of its time the plan may be slower than the best one; None where it doesn't fit."""
        bound = self.search.bounds.time_ps
        if bound is None or not self.fits:
            return None
        return max(0.0, 1 - bound / self.outcome.time_ps)

    def plan_toml(self) -> str:
        """Return the plan as a file that `train --plan` reads."""
        return plan_text(self.outcome.plan, self.space.network)

    def plan_python(self) -> str:
        """Return the plan as code for PyTorch.

        Raises
        ------
        BuddysimError
            a plan for which there is no code
        """
        return policy_text(self.space, self.search.best.assignment)

    def front(self) -> list[TriedPlan]:
        """Return the simulated plans of which none is faster and needs less memory, the fastest first."""
        best: list[TriedPlan] = []
        for one in sorted(self.search.tried, key=lambda one: (one.time_ps, one.used_bytes)):
            if not best or one.used_bytes < best[-1].used_bytes:
                best.append(one)
        return best

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, as `--json` writes them."""
        bounds = self.search.bounds
        return {
            **self.result.counters,
            "bounds.time_ms": None if bounds.time_ps is None else bounds.time_ps / PS_PER_MS,
            "bounds.memory_bytes": bounds.memory_bytes,
            "bounds.excess": self.excess,
            "budget_bytes": self.budget_bytes,
            "used_bytes": self.search.best.used_bytes,
            "placement": self.placement,
            "plan": [
                {
                    "first": row.first,
                    "last": row.last,
                    "groups": list(row.names),
                    "choice": row.choice,
                    "held_bytes": row.held_bytes,
                    "recompute_ms": row.kernels_ps / PS_PER_MS,
                    "link_ms": row.link_ps / PS_PER_MS,
                }
                for row in self.rows
            ],
            "scheme": self.scheme or None,
            "plans_simulated": len(self.search.tried),
            "plans_too_large": self.search.too_large,
            "stopped": self.search.stopped,
            "single_schemes": {name: _as_dict(one) for name, one in self.search.singles.items()},
            "front": [_as_dict(one) for one in self.front()],
            "as_is": _as_dict(self.search.plain),
            "provenance": self.result.provenance,
        }


def _as_dict(one: TriedPlan) -> dict[str, Any]:
    return {
        "time_ms": one.time_ps / PS_PER_MS, "used_bytes": one.used_bytes, "pinned_bytes": one.pinned_bytes,
        "fits": one.fits,
    }  # fmt: skip


def make_result(space: PlanSpace, search: SearchResult, budget: int) -> FitResult:
    """Simulate the answer once more, and as the framework would run it; return both."""
    best = search.best
    plan = space.scheme_plan(best.scheme) if best.assignment is None else space.plan(best.assignment)
    outcome = space.simulate(plan)
    plain = space.simulate(space.scheme_plan("eager"))
    placement = space.placements[0].name
    rows: tuple[PlanRow, ...] = ()
    if best.assignment is not None:
        placement = space.placements[best.assignment.placement].name
        rows = _rows(space, best, space.facts(best.assignment, outcome), space.eager_facts(plain))
    return FitResult(
        TrainingResult.from_outcome(outcome), TrainingResult.from_outcome(plain), budget, placement, rows,
        best.scheme if best.assignment is None else "", search, space,
    )  # fmt: skip


def _rows(space: PlanSpace, best: TriedPlan, facts: GroupFacts, retained: GroupFacts) -> tuple[PlanRow, ...]:
    assert best.assignment is not None
    rows = []
    for first, last, choice in best.assignment.runs():
        inside = range(first, last + 1)
        rows.append(
            PlanRow(
                first, last, (space.groups[first], space.groups[last]), space.choices[choice].name,
                sum(facts.held_bytes[one] for one in inside),
                sum(max(0, facts.kernels_ps[one] - retained.kernels_ps[one]) for one in inside),
                sum(facts.offload_ps[one] + facts.prefetch_ps[one] for one in inside),
            )
        )  # fmt: skip
    return tuple(rows)
