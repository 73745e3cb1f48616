"""The events at which allocations begin and end in a run (docs/reference/replay-rules.md, Effect of a free)."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict, deque
from dataclasses import dataclass, field

from buddysim.trace import Allocation, KernelLaunch, Trace


@dataclass
class AllocationChanges:
    """The allocations that begin and end before an event of the trace.

    Attributes
    ----------
    ends : allocations whose free takes effect, in the order of the frees
    begins : new allocations, in the order of their addresses
    waits : whether the event waits for all running kernels, as a new allocation has the address of a freed one
    """

    ends: list[Allocation] = field(default_factory=list)
    begins: list[Allocation] = field(default_factory=list)
    waits: bool = False


def allocation_changes(trace: Trace) -> dict[int, AllocationChanges]:
    """Return the changes of a trace's allocations by the index of the event before which they happen.

    A free takes effect when no kernel or copy launched before it may still run, as far as the trace shows: a copy of
    stream 0 ends before its call does. An allocation that
    is freed before the next event is never used, so it does not end. Changes after the last event have its index + 1.
    """
    begins_at: defaultdict[int, list[Allocation]] = defaultdict(list)
    ends_at: defaultdict[int, list[Allocation]] = defaultdict(list)
    for allocation in trace.allocations:
        if allocation.bytes:
            begins_at[allocation.alloc_event].append(allocation)
            if allocation.free_event is not None and is_used(allocation):
                ends_at[allocation.free_event].append(allocation)
    changes: defaultdict[int, AllocationChanges] = defaultdict(AllocationChanges)
    running: dict[int, int] = {}  # by stream: event index of its last launch, while that may run
    freed = _PendingFrees()
    for position, event in enumerate([*trace.events, None]):
        freed.add(position, ends_at.get(position, []))
        stream = trace.stream_of(event) if event else 0
        if stream == 0:
            running.clear()
        else:
            running.pop(stream, None)
            running.pop(0, None)
        ends = freed.pop_until(min(running.values(), default=position))
        begins = sorted(begins_at.get(position, []), key=lambda allocation: (allocation.base, allocation.index))
        waits = any(map(freed.overlaps, begins))
        if waits:
            running.clear()
            ends += freed.pop_until(position)
        if ends or begins:
            changes[position] = AllocationChanges(ends, begins, waits)
        if isinstance(event, KernelLaunch) or stream:
            running[stream] = position
    return dict(changes)


def is_used(allocation: Allocation) -> bool:
    """Return whether an allocation is live at any event."""
    return allocation.free_event is None or allocation.free_event > allocation.alloc_event


class _PendingFrees:
    """Freed allocations whose free has not taken effect."""

    def __init__(self) -> None:
        self._queue: deque[tuple[int, Allocation]] = deque()
        self._lines: list[tuple[int, int]] = []  # first, end; without overlaps

    def add(self, position: int, allocations: list[Allocation]) -> None:
        for allocation in allocations:
            self._queue.append((position, allocation))
            insort(self._lines, _lines(allocation))

    def pop_until(self, earliest: int) -> list[Allocation]:
        """Remove and return the allocations freed up to an event index."""
        ends = []
        while self._queue and self._queue[0][0] <= earliest:
            allocation = self._queue.popleft()[1]
            del self._lines[bisect_left(self._lines, _lines(allocation))]
            ends.append(allocation)
        return ends

    def overlaps(self, allocation: Allocation) -> bool:
        first, end = _lines(allocation)
        at = bisect_left(self._lines, (end, 0)) - 1
        return at >= 0 and self._lines[at][1] > first


def _lines(allocation: Allocation) -> tuple[int, int]:
    return allocation.first_line, allocation.first_line + allocation.entries
