"""The largest batch or sequence for which some plan fits, and the batch with the most tokens per second.

Whether a plan fits is tried with those that hold least: every group recomputed, with and without its input on the host,
in each placement. The batch, or the sequence in steps of 128 tokens, is doubled and then halved in between.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.training.fitting.assignment import Assignment
from buddysim.training.fitting.plan_space import PlanSpace
from buddysim.training.search import LARGEST_BATCH

if TYPE_CHECKING:
    from buddysim.training.cost import CostModel
    from buddysim.training.fitting.fit import FitQuestion
    from buddysim.training.fitting.fit_result import FitResult
    from buddysim.training.fitting.tried_plans import Progress

#: Tokens of a sequence are a multiple of this.
TOKENS = 128
_LARGEST_SEQUENCE = 1 << 20
_SMALLEST = ("recompute, offload input", "recompute", "offload")


def with_largest(question: FitQuestion, what: str, cost: CostModel | None = None) -> FitQuestion:
    """Return the question with the largest batch or sequence that fits; the smallest one where none does.

    Parameters
    ----------
    what : ``"batch"`` or ``"sequence"``
    """
    step, most = (1, LARGEST_BATCH) if what == "batch" else (TOKENS, _LARGEST_SEQUENCE)

    def changed(count: int) -> FitQuestion:
        return _changed(question, what, count * step)

    def fits(count: int) -> bool:
        try:
            space = changed(count).space(cost)
        except BuddysimError:
            if count == 1:
                raise
            return False  # more tokens than the model has positions
        return _fits_somehow(space)

    return changed(max(1, _last(fits, most // step)))


def max_token_rate(question: FitQuestion, cost: CostModel | None = None, progress: Progress | None = None) -> FitResult:
    """Return the answer with the most tokens per second, of batches that are powers of two and of the largest one."""
    request = with_largest(question, "batch", cost).request
    largest = request.batch or 1
    batches = sorted({*(1 << power for power in range(largest.bit_length())), largest})
    best: FitResult | None = None
    falls = 0
    for batch in batches:
        result = _changed(question, "batch", batch).answer(cost, progress)
        if best is None or _rate(result) > _rate(best):
            best, falls = result, 0
        else:
            falls += 1
        if falls == 2 or result.search.stopped:  # twice no better: larger batches need more work for memory
            break
    assert best is not None
    return best


def _rate(result: FitResult) -> float:
    counters = result.result.counters
    return float(counters["fits"] and (counters["tokens_per_s"] or counters["samples_per_s"]))


def _changed(question: FitQuestion, what: str, value: int) -> FitQuestion:
    request = question.request
    if what == "batch":
        return replace(question, request=replace(request, batch=value))
    return replace(question, request=replace(request, config=replace(request.config, sequence=value)))


def _fits_somehow(space: PlanSpace) -> bool:
    numbers = [number for number, one in enumerate(space.choices) if one.name in _SMALLEST] or [0]
    for placement in range(len(space.placements)):
        for number in reversed(numbers):
            if space.simulate(space.plan(Assignment(placement, (number,) * len(space.groups)))).fits:
                return True
    return False


def _last(fits: Callable[[int], bool], most: int) -> int:
    """The largest number up to `most` that fits, where all smaller ones do; 0 where none does."""
    low, high = 0, 1
    while high <= most and fits(high):
        low, high = high, 2 * high
    high = min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
