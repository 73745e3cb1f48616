"""Searches over simulated iterations: the largest batch that fits, the fastest scheme within a budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from buddysim.training.schemes import UNCHANGED

if TYPE_CHECKING:
    from buddysim.training.fit_check import Excess, FitChecks
    from buddysim.training.result import TrainingResult

LARGEST_BATCH = 1 << 20


def largest_batch(checks: FitChecks, limit: int = LARGEST_BATCH) -> int:
    """The largest batch that fits; 0 where none does.

    Whether a batch fits is not monotone: fragmentation may refuse one and let a larger one through, and a larger batch
    may get CONV algorithms with less workspace. Feature maps grow with the batch, so without workspace the
    largest batch that could fit is found from what is missing at two batches, which is close to linear. From there
    downwards, range by range of batches with the same algorithms, whose workspace grows too, the largest one that could
    fit is found in the same way, and from it each batch is tried until one fits.

    Parameters
    ----------
    limit : no larger batch is tried; a result of `limit` samples means that memory is no bound
    """
    high = _last(lambda batch: checks.check(batch).excess_without_workspace, 1, limit)
    if high and checks.check(high).fits:
        return high
    while high:
        low = _first_batch_with_same_algorithms(checks, high)
        for batch in range(_last(lambda batch: checks.check(batch).excess, low, high), low - 1, -1):
            if checks.check(batch).fits:
                return batch
        high = low - 1
    return 0


def _first_batch_with_same_algorithms(checks: FitChecks, high: int) -> int:
    """The first of the batches up to `high` that have its CONV algorithms."""
    algorithms = checks.algorithms(high)
    alike, step = high, 1
    while alike > 1 and checks.algorithms(max(alike - step, 1)) == algorithms:
        alike, step = max(alike - step, 1), 2 * step
    other = max(alike - step, 0)
    while alike - other > 1:
        middle = (alike + other) // 2
        if checks.algorithms(middle) == algorithms:
            alike = middle
        else:
            other = middle
    return alike


def _last(excess: Callable[[int], Excess], low: int, high: int) -> int:
    """The last batch from `low` to `high` at which neither excess is above 0, where both grow; `low` - 1 if none.

    The secant between a batch that could fit and one that could not gives the next to try; every third is the middle.
    """
    if max(excess(low)) > 0:
        return low - 1
    if max(excess(high)) <= 0:
        return high
    tried = 0
    while high - low > 1:
        pairs = zip(excess(low), excess(high), strict=True)
        crossings = [low + (high - low) * -below // (above - below) for below, above in pairs if above > 0]
        tried += 1
        middle = (low + high) // 2 if tried % 3 == 0 else min(crossings)
        batch = min(max(middle, low + 1), high - 1)
        if max(excess(batch)) > 0:
            high = batch
        else:
            low = batch
    return low


def fastest_that_fits(results: Mapping[str, TrainingResult], allow_lossy: bool = False) -> str | None:
    """The scheme that fits and takes the least time, of equally fast ones the one with the lowest peak; None: none.

    Parameters
    ----------
    allow_lossy : whether schemes count that change the training's values
    """
    fitting = [
        name
        for name, result in results.items()
        if result.counters["fits"]
        and result.counters["nothing_to_do"] is None
        and (allow_lossy or result.provenance["accuracy"] == UNCHANGED)
    ]
    ranks = {name: position for position, name in enumerate(results)}
    return min(
        fitting,
        key=lambda name: (
            results[name].counters["time_ms"],
            results[name].counters["memory.peak_bytes"],
            ranks[name],
        ),
        default=None,
    )
