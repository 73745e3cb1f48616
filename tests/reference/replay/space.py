"""The run's address space: when frees take effect, and which entries an allocation gets."""

from __future__ import annotations

from dataclasses import dataclass

from buddysim.trace import Allocation, KernelLaunch, Trace

FRAME = 16384
"""Entries of a 2 MiB page."""


@dataclass(frozen=True)
class RefAllocationRange:
    """An allocation and its first entry."""

    allocation: Allocation
    first: int

    @property
    def end(self) -> int:
        return self.first + self.allocation.entries


class RefAddressSpace:
    """The entry numbers of a trace's allocations.

    Parameters
    ----------
    trace : the trace

    Attributes
    ----------
    ranges : AllocationRange by the allocation's index
    freed_at : position at which each free takes effect, by the allocation's index
    waiting_events : positions of events that start only where nothing runs, so that an address can be used again
    n_entries : of the address space
    """

    def __init__(self, trace: Trace) -> None:
        self.allocations = trace.allocations
        self.freed_at, self.waiting_events = effects_of_frees(trace)
        self.ranges: dict[int, RefAllocationRange] = {}
        self._frames: dict[int, int] = {}  # frame: how many allocations use it
        self._page_of: dict[int, int] = {}  # frame: the page that it was given last
        self._frame_of: dict[int, int] = {}  # page: the frame that it was given last
        for position in range(len(trace.events) + 1):
            self._at(position)
        self.n_entries = max([64, *(-(-allocation_range.end // 64) * 64 for allocation_range in self.ranges.values())])

    def freed(self, position: int) -> list[RefAllocationRange]:
        """Return the allocations whose free takes effect at an event index, in the order of the frees."""
        gone = [a for a in self.allocations if self.freed_at.get(a.index) == position and a.alloc_event != a.free_event]
        return [self.ranges[a.index] for a in sorted(gone, key=lambda a: (a.free_event or 0, a.index))]

    def changes_at(self, position: int) -> bool:
        """Return whether allocations begin or end before an event."""
        return any(a.alloc_event == position for a in self.allocations) or bool(self.freed(position))

    def begins_at(self, position: int) -> list[RefAllocationRange]:
        """Return the allocations that begin at an event index and are not freed at once."""
        return [
            self.ranges[a.index] for a in self.allocations if a.alloc_event == position and a.free_event != position
        ]

    def entry(self, line: int, position: int) -> int:
        """Return the entry of a line (address / 128) that an event touches."""
        for allocation in self.allocations:
            if allocation.live_at(position) and allocation.base <= 128 * line < allocation.end:
                return self.ranges[allocation.index].first + line - allocation.base // 128
        raise ValueError(f"line {line:#x} lies in no live allocation")

    def _at(self, position: int) -> None:
        for allocation_range in self.freed(position):
            self._give_back(allocation_range)
        begins = sorted((a for a in self.allocations if a.alloc_event == position), key=lambda a: a.base)
        for allocation in begins:
            self._allocate(allocation)
        for allocation in begins:
            if allocation.free_event == position:
                self._give_back(self.ranges[allocation.index])

    def _allocate(self, allocation: Allocation) -> None:
        line = allocation.base // 128
        pages = range(line // FRAME, (line + allocation.entries - 1) // FRAME + 1)
        frame = next(f for f in self._candidates(pages) if self._fits(f, pages))
        for page in pages:
            at = frame + page - pages[0]
            self._frames[at] = self._frames.get(at, 0) + 1
            self._page_of[at], self._frame_of[page] = page, at
        self.ranges[allocation.index] = RefAllocationRange(allocation, frame * FRAME + line % FRAME)

    def _candidates(self, pages: range) -> list[int]:
        candidates = []
        for page, less in ((pages[0], 0), (pages[-1], len(pages) - 1)):
            frame = self._frame_of.get(page)
            if frame is not None and self._page_of[frame] == page:
                candidates.append(frame - less)
        beyond = max(self._frames, default=-1) + 1
        free = (f for f in range(beyond + 1) if not any(self._frames.get(f + i) for i in range(len(pages))))
        return [*candidates, next(free)]

    def _fits(self, frame: int, pages: range) -> bool:
        return frame >= 0 and all(
            not self._frames.get(frame + i) or self._page_of[frame + i] == page for i, page in enumerate(pages)
        )

    def _give_back(self, allocation_range: RefAllocationRange) -> None:
        for frame in range(allocation_range.first // FRAME, (allocation_range.end - 1) // FRAME + 1):
            self._frames[frame] -= 1


def effects_of_frees(trace: Trace) -> tuple[dict[int, int], set[int]]:
    """Return the event index at which each free takes effect, and the events that wait for all kernels."""
    may_run: list[tuple[int, int]] = []  # stream, position
    freed = [a for a in trace.allocations if a.free_event is not None]
    effects: dict[int, int] = {}
    waiting_events = set()
    for position in range(len(trace.events) + 1):
        event = trace.events[position] if position < len(trace.events) else None
        stream = trace.stream_of(event) if event else 0
        may_run = [run for run in may_run if stream and run[0] not in (stream, 0)]
        _take_effect(freed, position, may_run, effects)
        if _comes_back(trace.allocations, position, effects):
            waiting_events.add(position)
            may_run = []
            _take_effect(freed, position, may_run, effects)
        if isinstance(event, KernelLaunch) or stream:
            may_run.append((stream, position))
    return effects, waiting_events


def _take_effect(
    freed: list[Allocation], position: int, may_run: list[tuple[int, int]], effects: dict[int, int]
) -> None:
    """Let frees take effect at an event index if no kernel launched before them may still run."""
    for allocation in freed:
        free_event = allocation.free_event
        if free_event is not None and free_event <= position and not any(at < free_event for _, at in may_run):
            effects.setdefault(allocation.index, position)


def _comes_back(allocations: list[Allocation], position: int, effects: dict[int, int]) -> bool:
    """Return whether a new allocation overlaps a freed one whose free has not taken effect."""
    begins = [a for a in allocations if a.alloc_event == position]
    used = [a for a in allocations if a.alloc_event < position and a.alloc_event != a.free_event]
    held = [a for a in used if a.index not in effects]
    return any(a.base < _end(b) and b.base < _end(a) for a in begins for b in held)


def _end(allocation: Allocation) -> int:
    return allocation.base + 128 * allocation.entries
