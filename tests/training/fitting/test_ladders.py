"""Ladders of plans: their order, how the rung that fits is found, and that a larger budget finds no later one."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest

from buddysim.training.fitting.fit import plan_space
from buddysim.training.fitting.integer_program import budgets_of
from buddysim.training.fitting.ladder_search import last_without
from buddysim.training.fitting.ladders import _is_above, ladders
from buddysim.training.fitting.program_inputs import ProgramInputs
from buddysim.training.fitting.search import PlanSearch
from buddysim.training.request import TrainingRequest
from tests.training.fitting.random_chains import chain_space
from tests.training.fitting.small_model import TWO_BLOCKS_BUDGET, small_model

PARTS = 7  # four choices of seven are too many to try all


def inputs_of(held: list[list[int]], penalty: list[list[int]], pinned: list[list[int]] | None = None) -> ProgramInputs:
    """Coefficients in which nothing but these tables differs from nothing."""
    zero = tuple((0,) * len(held[0]) for _ in held)
    table = tuple(map(tuple, held))
    return ProgramInputs(
        table, (0,) * len(held), 0, 0, (), zero, zero, (True,) * len(held[0]), zero, zero,
        zero if pinned is None else tuple(map(tuple, pinned)), 0, 0, 0, 0, False, 0, tuple(map(tuple, penalty)),
    )  # fmt: skip


def test_choices_above_the_line_between_two_others_have_no_ladder() -> None:
    # time 0, 4, 10: the second choice holds 80 of 100, 40 would lie below the line from 100 to 0
    inputs = inputs_of([[100, 80, 0]] * 2, [[0, 4, 10]] * 2)
    mixed = ladders(0, inputs)
    assert [(one.before, one.after) for one in mixed] == [(0, 2)]
    inputs = inputs_of([[100, 30, 0]] * 2, [[0, 4, 10]] * 2)
    mixed = ladders(0, inputs)
    assert [(one.before, one.after) for one in mixed] == [(0, 1), (0, 2), (1, 2)]


@pytest.mark.parametrize(
    ("middle", "is_above"), [((8, 16), True), ((8, 15), True), ((8, 14), False), ((10, 8), True), ((10, 7), False)]
)
def test_a_point_is_above_a_line_that_begins_anywhere(middle: tuple[int, int], is_above: bool) -> None:
    """From (4, 30) to (12, 0): 15 at 8, 7.5 at 10."""
    assert _is_above((4, 30), middle, (12, 0)) == is_above


def test_choices_without_copies_have_ladders_of_their_own() -> None:
    inputs = inputs_of([[100, 50, 0]] * 2, [[0, 10, 2]] * 2, [[0, 0, 9]] * 2)
    mixed = ladders(0, inputs)
    assert [(one.before, one.after) for one in mixed] == [(0, 2), (0, 1)]
    assert [(one.before, one.after) for one in ladders(0, inputs, with_copies=False)] == [(0, 1)]


def test_groups_change_by_time_for_each_byte() -> None:
    inputs = inputs_of([[10, 0], [40, 0], [20, 0]], [[0, 1], [0, 1], [0, 1]])
    ladder = ladders(0, inputs)[0]
    assert [ladder.at(rung).choices for rung in range(4)] == [(0, 0, 0), (0, 1, 0), (0, 1, 1), (1, 1, 1)]


def test_what_is_reached_more_often_is_reached_no_later() -> None:
    draw = random.Random(0)
    kinds = set()
    for _ in range(300):
        rungs = draw.randint(1, 20)
        few = [draw.random() < 0.5 for _ in range(rungs)] + [True]
        more = [one or draw.random() < 0.3 for one in few]
        first, second = (last_without(reached.__getitem__, rungs) for reached in (few, more))
        if first is None:
            assert few[0]
        else:
            assert not few[first]
            assert few[first + 1]
            assert second is None or second <= first
            kinds.add(second == first)
    assert kinds == {True, False}
    assert last_without([False, False].__getitem__, 1) is None


def time_of(budget: int, pinned: str) -> float:
    """Return the time of a chain's best plan; infinity where none fits."""
    space = chain_space(0, PARTS, 4, budget)
    space.machine = space.machine.with_overrides({"training.max_pinned_memory": pinned}, "--set")
    best = PlanSearch(space, budget, steps=3).run().best
    return best.time_ps if best.fits else math.inf


@pytest.mark.slow
def test_more_memory_never_makes_a_chain_slower() -> None:
    times = [time_of(budget, "1 GiB") for budget in (70_000_000, 78_000_000, 90_000_000)]
    assert times == sorted(times, reverse=True)
    pinned = [time_of(78_000_000, size) for size in ("1 MiB", "40 MiB")]
    assert [*pinned, times[1]] == sorted([*pinned, times[1]], reverse=True)
    assert len({*times, *pinned}) > 3


def test_bounds_and_allocator_of_a_model() -> None:
    budget = TWO_BLOCKS_BUDGET
    request = TrainingRequest.of(network=small_model(blocks=2), machine="h100-sxm", batch=8, memory_bytes=budget)
    space = plan_space(request)
    search = PlanSearch(space, budget, steps=0)
    result = search.run()
    inputs = search.inputs[0]
    assert inputs.head_bytes > max(inputs.others_bytes)  # logits and what their gradients take
    budgets = budgets_of(inputs, 8)
    assert all(one < two for one, two in pairwise(budgets))
    own = [one for one in result.tried if one.assignment is not None and not one.assignment.placement]
    for one in own:
        assert one.assignment is not None
        assert inputs.memory_bytes(one.assignment.choices) <= one.peak_bytes
        assert inputs.bound_ps(one.assignment.choices) <= one.time_ps
        assert space.exceeds(space.plan(one.assignment)) is not one.fits
    assert {one.fits for one in own} == {True, False}
