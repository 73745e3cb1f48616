"""Sums over the allocations that are live at once, by event index."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from buddysim.trace import Allocation


def sums_over_time(
    allocations: Sequence[Allocation], amounts: NDArray[np.int64], first: int = 0, last: int | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return sums of amounts over the live allocations, at every event index of a span at which they change.

    Parameters
    ----------
    allocations : n allocations of one trace
    amounts : int64 (n, k), k amounts of each
    first, last : event indices at which the span begins and ends; without `last`, the end of the trace

    Returns
    -------
    tuple of the event indices, int64 (m,), rising from `first`; and the sums from each to the next, int64 (m, k)
    """
    alloc_events = np.array([a.alloc_event for a in allocations], dtype=np.int64)
    free_events = np.array(
        [np.iinfo(np.int64).max if a.free_event is None else a.free_event for a in allocations], dtype=np.int64
    )
    last = np.iinfo(np.int64).max - 1 if last is None else last
    live = (alloc_events <= last) & (free_events > first) & (free_events > alloc_events)
    alloc_events, free_events, amounts = np.maximum(alloc_events[live], first), free_events[live], amounts[live]
    positions = np.unique(
        np.concatenate([np.array([first], dtype=np.int64), alloc_events, free_events[free_events <= last]])
    )
    changes = np.zeros((len(positions) + 1, amounts.shape[1]), dtype=np.int64)
    np.add.at(changes, np.searchsorted(positions, alloc_events), amounts)
    np.subtract.at(changes, np.searchsorted(positions, free_events), amounts)
    return positions, changes[:-1].cumsum(axis=0)


def largest_first_until_none_over(
    allocations: Sequence[Allocation], excess: Sequence[int], relief: Sequence[int], sizes: Sequence[int]
) -> list[int]:
    """Select allocations to relieve so that the sum of excess over live allocations is never positive.

    Event indices are visited in rising order. While the sum is positive, the largest live allocation that can be
    relieved is relieved for its whole lifetime.

    Parameters
    ----------
    allocations : n allocations of one trace
    excess : int64 (n,), added to the sum while the allocation is live; may be negative
    relief : int64 (n,), subtracted from it once relieved; 0: it cannot be relieved
    sizes : bytes (n,); of two equal ones the first counts as larger

    Returns
    -------
    allocation numbers, in the order in which they are relieved
    """
    changes = [
        (a.alloc_event, 1, i) for i, a in enumerate(allocations) if a.free_event is None or a.free_event > a.alloc_event
    ]
    changes += [
        (a.free_event, 0, i)
        for i, a in enumerate(allocations)
        if a.free_event is not None and a.free_event > a.alloc_event
    ]
    changes.sort()
    now = list(excess)
    is_freed = [False] * len(now)
    waiting: list[tuple[int, int]] = []  # live allocations that can be relieved, largest first
    relieved: list[int] = []
    total = 0
    for number, (position, is_allocation, i) in enumerate(changes):
        total += now[i] if is_allocation else -now[i]
        is_freed[i] = not is_allocation
        if is_allocation and relief[i]:
            heapq.heappush(waiting, (-sizes[i], i))
        if number + 1 < len(changes) and changes[number + 1][0] == position:
            continue
        while total > 0:
            _, most = heapq.heappop(waiting)
            if not is_freed[most]:
                now[most] -= relief[most]
                total -= relief[most]
                relieved.append(most)
    return relieved
