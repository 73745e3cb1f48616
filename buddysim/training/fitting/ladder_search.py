"""The search of a ladder: the rung from which on plans fit, and plans next to the last one that doesn't.

Each plan is simulated, but for those that the bounds rule out: they don't fit, or aren't faster than the best so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from buddysim.training.fitting.assignment import Assignment
from buddysim.training.fitting.ladders import Ladder
from buddysim.training.fitting.objective import FitObjective
from buddysim.training.fitting.program_inputs import ProgramInputs
from buddysim.training.fitting.tried_plans import TriedPlans


def last_without(is_reached: Callable[[int], bool], rungs: int) -> int | None:
    """Return the last rung before those that a condition holds for, found by halving; None where there is none."""
    if is_reached(0) or not is_reached(rungs):
        return None
    low, high = 0, rungs
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_reached(middle) else (middle, high)
    return low


def fastest_rung(ladder: Ladder, plans: TriedPlans, inputs: ProgramInputs, budget: int) -> int | None:
    """Simulate rungs until the first that fits is found; return the one before it, None where there is none.

    Parameters
    ----------
    budget : bytes of GPU memory that tensors may take
    """

    def is_reached(rung: int) -> bool:
        one = ladder.at(rung)
        if inputs.bound_ps(one.choices) >= plans.fastest_ps():
            return True
        return inputs.memory_bytes(one.choices) <= budget and plans.fits(one)

    return last_without(is_reached, ladder.rungs)


def smallest_rung(ladder: Ladder, plans: TriedPlans, inputs: ProgramInputs, limit_ps: int) -> int | None:
    """Simulate rungs until the last that is fast enough is found; return it, None where all or none are."""

    def is_reached(rung: int) -> bool:
        one = ladder.at(rung)
        return inputs.bound_ps(one.choices) > limit_ps or plans.simulated(one).time_ps > limit_ps

    return last_without(is_reached, ladder.rungs)


def try_steps(
    ladder: Ladder, rung: int, plans: TriedPlans, inputs: ProgramInputs, budget: int, objective: FitObjective, most: int
) -> None:
    """Simulate plans between a rung and the next one, in which one group does more than on that rung.

    Parameters
    ----------
    most : so many, of those that hold least
    """
    start, limit = ladder.at(rung), inputs.expected_ps(ladder.at(rung + 1).choices)
    steps = {one: inputs.memory_bytes(one.choices) for one in _steps(start, inputs)}
    between = [one for one in steps if inputs.expected_ps(one.choices) < limit]
    for one in sorted(between, key=lambda one: (steps[one], one))[:most]:
        bound = inputs.bound_ps(one.choices)
        if objective.limit_ps is not None:
            if bound <= objective.limit_ps:
                plans.simulated(one)
        elif steps[one] <= budget and bound < plans.fastest_ps():
            plans.fits(one)


def _steps(start: Assignment, inputs: ProgramInputs) -> Iterator[Assignment]:
    """Plans in which one group holds less, and has no fewer kernels and copies."""
    for members in inputs.classes():
        for before in sorted({start.choices[one] for one in members}):
            group = next(one for one in members if start.choices[one] == before)
            own = _work(inputs, group, before)
            for after in range(inputs.choices):
                holds_less = inputs.held_bytes[group][after] < inputs.held_bytes[group][before]
                if holds_less and all(one >= two for one, two in zip(_work(inputs, group, after), own, strict=True)):
                    yield start.with_choice(group, after)


def _work(inputs: ProgramInputs, group: int, choice: int) -> tuple[int, int]:
    copies = inputs.offload_ps[group][choice] + inputs.prefetch_ps[group][choice]
    return inputs.kernels_ps[group][choice], copies
