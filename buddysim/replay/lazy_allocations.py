"""Large allocations in pieces: what a run keeps of their entries is made where it touches them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from buddysim.replay.address_space import AddressSpace, AllocationRange
from buddysim.replay.segments import first_touched

SEGMENT_BITS = 12
SEGMENT_ENTRIES = 1 << SEGMENT_BITS
#: Entries of an allocation from which on it is large.
LARGE_ENTRIES = 1 << 18

EntryRange = tuple[int, int]  # first entry, end


class LazyAllocations:
    """The segments of large live allocations, and which of them are materialized.

    A segment is `SEGMENT_ENTRIES` entries from a multiple of that number on, inside one allocation. The entries before
    an allocation's first segment and after its last one are materialized when the allocation begins.

    Parameters
    ----------
    layout : where the allocations lie
    """

    def __init__(self, layout: AddressSpace) -> None:
        self._touched: NDArray[np.uint8] = np.zeros((layout.n_entries >> SEGMENT_BITS) + 1, dtype=np.uint8)
        self._live: dict[int, AllocationRange] = {}
        self._ranges: tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int64]] | None = None
        self._by_piece: list[tuple[int, int]] = []

    @staticmethod
    def middle(placed: AllocationRange) -> EntryRange:
        """The entries of an allocation that are pieces; of a small one none, at its end."""
        first = -(-placed.first_entry // SEGMENT_ENTRIES) * SEGMENT_ENTRIES
        end = placed.end_entry // SEGMENT_ENTRIES * SEGMENT_ENTRIES
        if placed.end_entry - placed.first_entry < LARGE_ENTRIES or first >= end:
            return placed.end_entry, placed.end_entry
        return first, end

    def begin(self, placed: AllocationRange) -> None:
        """An allocation lives from now on, untouched."""
        first, end = self.middle(placed)
        if first < end:
            self._touched[first >> SEGMENT_BITS : end >> SEGMENT_BITS] = 0
            self._live[placed.region] = placed
            self._ranges = None

    def end(self, placed: AllocationRange) -> None:
        """An allocation is freed."""
        if self._live.pop(placed.region, None) is not None:
            self._ranges = None

    def touched(self, placed: AllocationRange, first_entry: int, end_entry: int) -> Iterator[EntryRange]:
        """The entries of a range of an allocation that have been touched, those that are no pieces among them."""
        first, end = (min(max(at, first_entry), end_entry) for at in self.middle(placed))
        if first_entry < first:
            yield first_entry, first
        yield from self._runs(first, end, 1)
        if end < end_entry:
            yield end, end_entry

    def untouched(self, placed: AllocationRange, first_entry: int, end_entry: int) -> Iterator[EntryRange]:
        """The entries of a range of an allocation that have not been touched."""
        first, end = (min(max(at, first_entry), end_entry) for at in self.middle(placed))
        yield from self._runs(first, end, 0)

    def touch_lines(self, lines: NDArray[np.uint64]) -> list[tuple[AllocationRange, EntryRange]]:
        """The pieces that the words of a chunk's lines touch first, as runs of entries."""
        if not self._live:
            return []
        if self._ranges is None:
            self._sort()
        assert self._ranges is not None
        found = first_touched(lines, *self._ranges, self._touched, SEGMENT_BITS)
        return [run for first, end in _runs(found) for run in self._by_owner(first, end)]

    def touch(self, placed: AllocationRange, first_entry: int, end_entry: int) -> list[EntryRange]:
        """The pieces of a range of an allocation that are touched first."""
        first, end = self.middle(placed)
        first = max(first, first_entry // SEGMENT_ENTRIES * SEGMENT_ENTRIES)
        end = min(end, -(-end_entry // SEGMENT_ENTRIES) * SEGMENT_ENTRIES)
        found = list(self._runs(first, end, 0))
        for run in found:
            self._touched[run[0] >> SEGMENT_BITS : run[1] >> SEGMENT_BITS] = 1
        return found

    def _runs(self, first: int, end: int, state: int) -> Iterator[EntryRange]:
        """The entries of a range whose pieces have been touched, or not, in runs."""
        if first < end:
            before, behind = first >> SEGMENT_BITS, -(-end // SEGMENT_ENTRIES)
            for piece, stop in _runs(before + np.flatnonzero(self._touched[before:behind] == state)):
                yield max(piece << SEGMENT_BITS, first), min(stop << SEGMENT_BITS, end)

    def _by_owner(self, piece: int, stop: int) -> Iterator[tuple[AllocationRange, EntryRange]]:
        while piece < stop:
            _, region = self._by_piece[bisect_right(self._by_piece, (piece, 1 << 62)) - 1]
            placed = self._live[region]
            end = min(stop, self.middle(placed)[1] >> SEGMENT_BITS)
            yield placed, (piece << SEGMENT_BITS, end << SEGMENT_BITS)
            piece = end

    def _sort(self) -> None:
        """Ranges of lines for `first_touched`, and owners by their first piece."""
        rows = []
        self._by_piece = []
        for region, placed in self._live.items():
            first, end = self.middle(placed)
            line = placed.first_line + first - placed.first_entry
            rows.append((line, line + end - first, (first >> SEGMENT_BITS) - (line >> SEGMENT_BITS)))
            self._by_piece.append((first >> SEGMENT_BITS, region))
        rows.sort()
        self._by_piece.sort()
        firsts, ends, pieces = zip(*rows, strict=True)
        self._ranges = np.array(firsts, np.uint64), np.array(ends, np.uint64), np.array(pieces, np.int64)


def _runs(numbers: NDArray[np.int64]) -> list[EntryRange]:
    """First and end of each run of rising numbers that follow each other."""
    if not len(numbers):
        return []
    ends = np.flatnonzero(np.diff(numbers) != 1)
    firsts, lasts = np.concatenate(([0], ends + 1)), np.concatenate((ends, [len(numbers) - 1]))
    return list(zip(numbers[firsts].tolist(), (numbers[lasts] + 1).tolist(), strict=True))
