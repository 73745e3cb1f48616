"""When allocations begin and end in a run (docs/model-rules.md, When a free takes effect)."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict, deque
from dataclasses import dataclass, field

from buddysim.trace import Allocation, KernelLaunch, Trace

LINE_BYTES = 128


@dataclass
class AllocationChanges:
    """What happens to allocations before an event of the trace.

    Attributes
    ----------
    ends : allocations whose free takes effect, in the order of the frees
    begins : allocations that are born, in the order of their addresses
    waits : whether the event waits for all running kernels: one that is born has the address of one that was freed
    """

    ends: list[Allocation] = field(default_factory=list)
    begins: list[Allocation] = field(default_factory=list)
    waits: bool = False


def allocation_changes(trace: Trace) -> dict[int, AllocationChanges]:
    """What happens to a trace's allocations, by the number of the event before which it happens, or of all events.

    A free takes effect when no kernel that was launched before it may still run, as far as the trace tells. What is
    freed before the next event after its birth doesn't end: it never begins to be used.
    """
    births: defaultdict[int, list[Allocation]] = defaultdict(list)
    frees: defaultdict[int, list[Allocation]] = defaultdict(list)
    for allocation in trace.allocations:
        if allocation.bytes:
            births[allocation.alloc_event].append(allocation)
            if allocation.free_event is not None and is_used(allocation):
                frees[allocation.free_event].append(allocation)
    moments: defaultdict[int, AllocationChanges] = defaultdict(AllocationChanges)
    running: dict[int, int] = {}  # by stream: the position of its last launch, as long as that may run
    freed = _PendingFrees()
    for position, event in enumerate([*trace.events, None]):
        freed.add(position, frees.get(position, []))
        stream = trace.kernels[event.kernel].stream if isinstance(event, KernelLaunch) else 0
        if stream == 0:
            running.clear()
        else:
            running.pop(stream, None)
            running.pop(0, None)
        ends = freed.taken(min(running.values(), default=position))
        born = sorted(births.get(position, []), key=lambda allocation: (allocation.base, allocation.index))
        waits = any(map(freed.overlaps, born))
        if waits:
            running.clear()
            ends += freed.taken(position)
        if ends or born:
            moments[position] = AllocationChanges(ends, born, waits)
        if isinstance(event, KernelLaunch):
            running[stream] = position
    return dict(moments)


def is_used(allocation: Allocation) -> bool:
    """Whether there is an event for which an allocation is live."""
    return allocation.free_event is None or allocation.free_event > allocation.alloc_event


class _PendingFrees:
    """Allocations whose free has not taken effect."""

    def __init__(self) -> None:
        self._queue: deque[tuple[int, Allocation]] = deque()
        self._lines: list[tuple[int, int]] = []  # first, end; they don't overlap

    def add(self, position: int, allocations: list[Allocation]) -> None:
        for allocation in allocations:
            self._queue.append((position, allocation))
            insort(self._lines, _lines(allocation))

    def taken(self, earliest: int) -> list[Allocation]:
        """Those freed up to this position, which are waited for no longer."""
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
    first = allocation.base // LINE_BYTES
    return first, first + allocation.entries
