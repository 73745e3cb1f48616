"""Entry numbers of a trace's allocations in a run (docs/developers/architecture.md, Addresses in a run)."""

from __future__ import annotations

from dataclasses import dataclass

from buddysim.base.errors import BuddysimError
from buddysim.replay.allocation_events import allocation_changes, is_used
from buddysim.replay.frames import FrameAllocator
from buddysim.trace import Allocation, Trace

LINES_PER_PAGE = 2 * 1024**2 // 128
MAX_ENTRIES = 2**32 - 64
MAX_PAGES = MAX_ENTRIES // LINES_PER_PAGE


@dataclass(frozen=True)
class AllocationRange:
    """The entry numbers of an allocation in a run.

    Attributes
    ----------
    allocation : the trace's allocation
    region : its index among the allocations of the engine
    first_entry, end_entry : its entries; other allocations may have them at other times
    """

    allocation: Allocation
    region: int
    first_entry: int
    end_entry: int


class AddressSpace:
    """Entry numbers of every allocation.

    Attributes
    ----------
    ranges : list of AllocationRange, in the order of the trace
    range_of : dict from an allocation's index to its AllocationRange
    changes : dict from an event index to the allocations that begin and end before it
    n_entries : entries of the run's address space, a multiple of 64
    """

    def __init__(self, trace: Trace) -> None:
        self.changes = allocation_changes(trace)
        first_entries: dict[int, int] = {}
        frames = FrameAllocator()
        end = 0
        for _, changes in sorted(self.changes.items()):
            for allocation in changes.ends:
                frames.release(first_entries[allocation.index] // LINES_PER_PAGE, _pages(allocation))
            for allocation in changes.begins:
                line, pages = allocation.first_line, _pages(allocation)
                _refuse_more(trace, frames.count * LINES_PER_PAGE + allocation.entries if pages > MAX_PAGES else 0)
                first = frames.allocate(line // LINES_PER_PAGE, pages) * LINES_PER_PAGE + line % LINES_PER_PAGE
                first_entries[allocation.index] = first
                end = max(end, first + allocation.entries)
                _refuse_more(trace, end)
            for allocation in changes.begins:
                if not is_used(allocation):
                    frames.release(first_entries[allocation.index] // LINES_PER_PAGE, _pages(allocation))
        self.n_entries = max(64, -(-end // 64) * 64)
        allocations = [a for a in trace.allocations if a.bytes]
        self.ranges = [
            AllocationRange(a, region, first_entries[a.index], first_entries[a.index] + a.entries)
            for region, a in enumerate(allocations)
        ]
        self.range_of = {p.allocation.index: p for p in self.ranges}


def _pages(allocation: Allocation) -> int:
    """Return the pages of the trace's addresses in which an allocation lies."""
    line = allocation.first_line
    return (line + allocation.entries - 1) // LINES_PER_PAGE - line // LINES_PER_PAGE + 1


def _refuse_more(trace: Trace, entries: int) -> None:
    """Refuse more entries than the engine can number."""
    if entries > MAX_ENTRIES:
        raise BuddysimError(
            f"{trace.path}: allocations of {entries * 128 / 2**30:.0f} GiB: expected at most "
            f"{MAX_ENTRIES * 128 / 2**30:.0f} GiB"
        )
