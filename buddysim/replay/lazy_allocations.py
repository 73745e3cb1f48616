"""Large allocations: the state of their entries is made segment by segment, at the first access."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from buddysim.replay.address_space import AddressSpace, AllocationRange
from buddysim.replay.segments import first_accessed

SEGMENT_BITS = 12
SEGMENT_ENTRIES = 1 << SEGMENT_BITS
#: An allocation of at least so many entries is large.
LARGE_ENTRIES = 1 << 18

EntryRange = tuple[int, int]  # first entry, end


class LazyAllocations:
    """The segments of large live allocations, and which of them are materialized.

    A segment is `SEGMENT_ENTRIES` entries from a multiple of that number on, inside one allocation. The entries before
    an allocation's first segment and after its last one are materialized when the allocation begins.

    Parameters
    ----------
    address_space : entry numbers of the allocations
    """

    def __init__(self, address_space: AddressSpace) -> None:
        self._materialized: NDArray[np.uint8] = np.zeros((address_space.n_entries >> SEGMENT_BITS) + 1, dtype=np.uint8)
        self._live: dict[int, AllocationRange] = {}
        self._ranges: tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int64]] | None = None
        self._by_segment: list[tuple[int, int]] = []

    @staticmethod
    def segment_range(allocation_range: AllocationRange) -> EntryRange:
        """Return the entries of an allocation that are in segments: none, at its end, for a small allocation."""
        first = -(-allocation_range.first_entry // SEGMENT_ENTRIES) * SEGMENT_ENTRIES
        end = allocation_range.end_entry // SEGMENT_ENTRIES * SEGMENT_ENTRIES
        if allocation_range.allocation.entries < LARGE_ENTRIES or first >= end:
            return allocation_range.end_entry, allocation_range.end_entry
        return first, end

    def begin(self, allocation_range: AllocationRange) -> None:
        """Begin an allocation, with no segment materialized."""
        first, end = self.segment_range(allocation_range)
        if first < end:
            self._materialized[first >> SEGMENT_BITS : end >> SEGMENT_BITS] = 0
            self._live[allocation_range.region] = allocation_range
            self._ranges = None

    def end(self, allocation_range: AllocationRange) -> None:
        """End an allocation."""
        if self._live.pop(allocation_range.region, None) is not None:
            self._ranges = None

    def materialized(self, allocation_range: AllocationRange, first_entry: int, end_entry: int) -> Iterator[EntryRange]:
        """Yield the materialized entries of a range of an allocation, those outside segments included."""
        first, end = (min(max(at, first_entry), end_entry) for at in self.segment_range(allocation_range))
        if first_entry < first:
            yield first_entry, first
        yield from self._runs(first, end, 1)
        if end < end_entry:
            yield end, end_entry

    def materialize_lines(self, lines: NDArray[np.uint64]) -> list[tuple[AllocationRange, EntryRange]]:
        """Materialize the segments that the lines of a chunk access first; return them as ranges of entries."""
        if not self._live:
            return []
        if self._ranges is None:
            self._sort()
        assert self._ranges is not None
        segments = first_accessed(lines, *self._ranges, self._materialized, SEGMENT_BITS)
        return [run for first, end in _runs(segments) for run in self._by_owner(first, end)]

    def materialize(self, allocation_range: AllocationRange, first_entry: int, end_entry: int) -> list[EntryRange]:
        """Materialize the segments of a range of an allocation; return those that were not."""
        first, end = self.segment_range(allocation_range)
        first = max(first, first_entry // SEGMENT_ENTRIES * SEGMENT_ENTRIES)
        end = min(end, -(-end_entry // SEGMENT_ENTRIES) * SEGMENT_ENTRIES)
        ranges = list(self._runs(first, end, 0))
        for run in ranges:
            self._materialized[run[0] >> SEGMENT_BITS : run[1] >> SEGMENT_BITS] = 1
        return ranges

    def _runs(self, first: int, end: int, state: int) -> Iterator[EntryRange]:
        """Yield the entries of a range whose segments are in a state: 1 materialized, 0 not."""
        if first < end:
            before, behind = first >> SEGMENT_BITS, -(-end // SEGMENT_ENTRIES)
            for segment, stop in _runs(before + np.flatnonzero(self._materialized[before:behind] == state)):
                yield max(segment << SEGMENT_BITS, first), min(stop << SEGMENT_BITS, end)

    def _by_owner(self, segment: int, stop: int) -> Iterator[tuple[AllocationRange, EntryRange]]:
        while segment < stop:
            _, region = self._by_segment[bisect_right(self._by_segment, (segment, 1 << 62)) - 1]
            allocation_range = self._live[region]
            end = min(stop, self.segment_range(allocation_range)[1] >> SEGMENT_BITS)
            yield allocation_range, (segment << SEGMENT_BITS, end << SEGMENT_BITS)
            segment = end

    def _sort(self) -> None:
        """Sort the ranges of lines for `first_accessed`, and the allocations by their first segment."""
        rows = []
        self._by_segment = []
        for region, allocation_range in self._live.items():
            first, end = self.segment_range(allocation_range)
            line = allocation_range.allocation.first_line + first - allocation_range.first_entry
            rows.append((line, line + end - first, (first >> SEGMENT_BITS) - (line >> SEGMENT_BITS)))
            self._by_segment.append((first >> SEGMENT_BITS, region))
        rows.sort()
        self._by_segment.sort()
        firsts, ends, offsets = zip(*rows, strict=True)
        self._ranges = np.array(firsts, np.uint64), np.array(ends, np.uint64), np.array(offsets, np.int64)


def _runs(numbers: NDArray[np.int64]) -> list[EntryRange]:
    """Return first and end of each run of consecutive numbers."""
    if not len(numbers):
        return []
    ends = np.flatnonzero(np.diff(numbers) != 1)
    firsts, lasts = np.concatenate(([0], ends + 1)), np.concatenate((ends, [len(numbers) - 1]))
    return list(zip(numbers[firsts].tolist(), (numbers[lasts] + 1).tolist(), strict=True))
