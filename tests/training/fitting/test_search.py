"""The search against every plan of small networks, and its bounds against the timeline."""

from __future__ import annotations

import pytest

from buddysim.training.fitting.assignment import Assignment
from buddysim.training.fitting.mixed_program import MixedProgram, MixedSolution
from buddysim.training.fitting.search import PlanSearch
from tests.training.fitting.random_chains import chain_space, every_plan

#: Plans that a search of such a chain simulates at most next to a ladder.
STEPS = 64


def middle_budget(seed: int, parts: int, choices: int) -> int:
    """Return what lies between the peaks of plans of one choice."""
    space = chain_space(seed, parts, choices)
    peaks = [
        space.simulate(space.plan(Assignment(0, (choice,) * parts))).all_layers.usage.peak_bytes
        for choice in range(choices)
    ]
    return (min(peaks) + max(peaks)) // 2


def check(seed: int, parts: int, choices: int) -> tuple[int, int, int]:
    """Compare a search with every plan; return the times of its answer and of the best plan, and plans simulated."""
    budget = middle_budget(seed, parts, choices)
    space = chain_space(seed, parts, choices, budget)
    tried = every_plan(space)
    search = PlanSearch(space, budget, steps=STEPS)
    result = search.run()
    best = min(time for time, _, fits in tried.values() if fits)
    assert result.best.fits
    assert result.best.peak_bytes <= budget
    assert result.bounds.memory_bytes <= min(peak for _, peak, _ in tried.values())
    assert result.bounds.time_ps is not None
    assert result.bounds.time_ps <= best <= result.best.time_ps
    inputs = search.inputs[0]
    for assignment, (time, peak, _) in tried.items():
        assert inputs.memory_bytes(assignment.choices) <= peak
        assert inputs.bound_ps(assignment.choices) <= time
    assert result.best.assignment is None or tried[result.best.assignment][0] == result.best.time_ps
    return result.best.time_ps, best, len(result.tried)


def test_every_plan_of_a_few_chains() -> None:
    for seed in range(2):
        answer, best, _ = check(seed, 5, 2)
        assert answer == best


def test_every_program_is_solved_by_the_solver_that_is_given() -> None:
    programs: list[MixedProgram] = []

    def solve(program: MixedProgram) -> MixedSolution:
        programs.append(program)
        return MixedSolution(None, None)

    space = chain_space(0, 4, 2, middle_budget(0, 4, 2))
    search = PlanSearch(space, 1 << 40, steps=0, solve=solve)
    assert search.run().bounds.time_ps is None  # as the solver says
    assert len(programs) >= 2 * len(search.inputs)


@pytest.mark.slow
@pytest.mark.parametrize(("parts", "choices"), [(4, 4), (12, 2), (6, 4)])
def test_every_plan_of_larger_chains(parts: int, choices: int) -> None:
    """`tests.training.fitting.brute_force` does so for 50 networks."""
    answer, best, _ = check(0, parts, choices)
    assert answer == best
