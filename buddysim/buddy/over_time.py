"""What is allocated at once: sums over the allocations that are live at a position among a trace's events."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from buddysim.trace import Allocation


def sums_over_time(
    allocations: Sequence[Allocation], amounts: NDArray[np.int64], first: int = 0, last: int | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sums of amounts over the live allocations, at every position of a span at which they change.

    Parameters
    ----------
    allocations : n allocations of one trace
    amounts : int64 (n, k), k amounts of each
    first, last : the positions with which the span begins and ends; without `last` it goes to the end of the trace

    Returns
    -------
    tuple of the positions, int64 (m,), rising, the first one `first`; and the sums from each to the next, int64 (m, k)
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
    """Which allocations to relieve so that the excess of those that are live together is never positive.

    Positions are looked at in rising order. While the sum is positive there, the largest live allocation that can be
    relieved is, everywhere.

    Parameters
    ----------
    allocations : n allocations of one trace
    excess : what each adds to the sum while it lives; may be negative
    relief : how much less that is once it is relieved; 0 where it can't be
    sizes : of two equal ones the first counts as larger

    Returns
    -------
    their numbers, in the order in which they are relieved
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
    waiting: list[tuple[int, int]] = []  # those that live and can be relieved, the largest one first
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
