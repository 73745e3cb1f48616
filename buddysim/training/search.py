"""Searches over simulated iterations: the largest batch that fits, the fastest scheme within a budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from buddysim.training.result import TrainingResult

LARGEST_BATCH = 1 << 20


def largest_batch(simulated: Callable[[int], TrainingResult], limit: int = LARGEST_BATCH) -> tuple[int, TrainingResult]:
    """The largest batch that fits, and its result; 0 with the result of batch 1 where none does.

    Whether a batch fits is not monotone: fragmentation may refuse one and let a larger one through. The memory that is
    live at once is monotone, so the largest batch that could fit is found by bisection, and from there downwards each
    batch is tried until one fits. (A larger batch may let faster algorithms with more workspace win; batches beyond one
    that can't fit for that reason are not searched.)

    Parameters
    ----------
    simulated : the result of a batch
    limit : no larger batch is tried; a result of `limit` samples means that memory is no bound
    """
    fits: dict[int, bool] = {}

    def could_fit(batch: int) -> bool:
        result = simulated(batch)
        fits[batch] = bool(result.counters["fits"])
        return result.outcome.could_fit

    possible, impossible = 0, 0
    while not impossible and possible < limit:
        batch = min(max(2 * possible, 1), limit)
        if could_fit(batch):
            possible = batch
        else:
            impossible = batch
    while impossible - possible > 1:
        middle = (possible + impossible) // 2
        if could_fit(middle):
            possible = middle
        else:
            impossible = middle
    for batch in range(possible, 0, -1):
        if fits.get(batch, True):
            result = simulated(batch)
            if result.counters["fits"]:
                return batch, result
    return 0, simulated(1)


def fastest_that_fits(results: Mapping[str, TrainingResult]) -> str | None:
    """The scheme that fits and takes the least time, of equally fast ones the one with the lowest peak; None: none."""
    fitting = [name for name, result in results.items() if result.counters["fits"]]
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
