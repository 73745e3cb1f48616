"""Searches over simulated iterations: the largest batch that fits, the fastest scheme within a budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from buddysim.dnn.result import Result

LARGEST_BATCH = 1 << 20


def largest_batch(simulated: Callable[[int], Result], limit: int = LARGEST_BATCH) -> tuple[int, Result]:
    """The largest batch that fits, and its result; 0 with the result of batch 1 where not even that fits.

    Doubles the batch until it doesn't fit, then halves the gap: a batch that fits beside one more that doesn't.
    (Fragmentation may let a larger one fit again; that isn't looked for.)

    Parameters
    ----------
    simulated : the result of a batch
    limit : no larger batch is tried; a result of `limit` samples means that memory is no bound
    """
    result = simulated(1)
    if not result.counters["fits"]:
        return 0, result
    fitting, failing = 1, 0
    while not failing and fitting < limit:
        tried = simulated(min(2 * fitting, limit))
        if tried.counters["fits"]:
            fitting, result = min(2 * fitting, limit), tried
        else:
            failing = min(2 * fitting, limit)
    while failing - fitting > 1:
        middle = (fitting + failing) // 2
        tried = simulated(middle)
        if tried.counters["fits"]:
            fitting, result = middle, tried
        else:
            failing = middle
    return fitting, result


def fastest_that_fits(results: Mapping[str, Result]) -> str | None:
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
