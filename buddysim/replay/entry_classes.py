"""Each entry's size state during a run: its size class now, and its class after a store of some kernels."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from buddysim.buddy import SizeSource
from buddysim.replay.address_space import AddressSpace, AllocationRange
from buddysim.replay.lazy_allocations import LazyAllocations
from buddysim.replay.lazy_array import lazy_zeros

AFTER = 4  # where the class after a store begins in a state


class EntryClasses:
    """The state array that the engine reads and changes.

    It has room for the classes of one snapshot beside those of now. Which snapshot that is, is decided allocation by
    allocation: where kernels of several snapshots run at once and store to one, its classes change from chunk to chunk.
    Of a large allocation only what has been touched has a state; what is not touched has it made when it is.

    Parameters
    ----------
    layout : where the allocations lie
    sizes : where the entries' sizes come from
    launch_index : of the first kernel that runs
    large : what has been touched of large allocations

    Attributes
    ----------
    array : uint8 (entries,), class now | class after a store << 4
    extrapolated_entries : entries whose class at their birth is that of a neighbouring sampled page
    used : by allocation and snapshot whose classes the run has used: entries, and those with a neighbour's class
    """

    def __init__(self, layout: AddressSpace, sizes: SizeSource, launch_index: int, large: LazyAllocations) -> None:
        self.sizes, self._launch_index, self._large = sizes, launch_index, large
        self.array = lazy_zeros(layout.n_entries)
        self.extrapolated_entries = 0
        self.used: dict[tuple[int, int | None], tuple[int, int]] = {}
        self._after: dict[int, int | None] = {}  # by allocation: the snapshot that the classes after a store are of
        self._born: dict[int, int | None] = {}  # by large allocation: the snapshot of its classes at its birth
        self._copied: dict[int, _CopiedRanges] = {}  # by large allocation: what copies wrote before it was touched

    def begin(self, placed: AllocationRange) -> None:
        """An allocation begins with sizes of its own."""
        index, states = placed.allocation.index, self._states(placed)
        snapshot = self._after[index] = self.sizes.at_allocation(self._launch_index, index)
        if self._is_large(placed):
            self._born[index], self._copied[index] = snapshot, _CopiedRanges()
            taken = self.sizes.taken_from_neighbours(snapshot, index)
            for first, end in self._large.touched(placed, placed.first_entry, placed.end_entry):
                self.make(placed, first, end)
        else:
            taken = self.sizes.write_classes(snapshot, index, states)
            states *= (1 << AFTER) + 1
        self.extrapolated_entries += taken
        self.used[index, snapshot] = len(states), taken

    def make(self, placed: AllocationRange, first_entry: int, end_entry: int) -> None:
        """A part of a large allocation is touched: makes its states, as if it had had them from its birth on."""
        index = placed.allocation.index
        states = self.array[first_entry:end_entry]
        offset = first_entry - placed.first_entry
        self.sizes.write_part(self._born[index], index, offset, states)
        for first, end, snapshot in self._copied[index].within(first_entry, end_entry):
            part = states[first - first_entry : end - first_entry]
            self.sizes.write_part(snapshot, index, first - placed.first_entry, part)
        self.sizes.write_part(self._after[index], index, offset, states, AFTER)

    def end(self, placed: AllocationRange) -> None:
        """An allocation is freed."""
        index = placed.allocation.index
        del self._after[index]
        self._born.pop(index, None)
        self._copied.pop(index, None)

    def writers(self, placed: AllocationRange) -> tuple[int, int]:
        """First and last launch index of the kernels whose stores leave the array; none if reversed."""
        return self.sizes.writers_before(self._after[placed.allocation.index], placed.allocation.index)

    def after_store(self, placed: AllocationRange, launch_index: int) -> None:
        """The array gets what stores of the kernel of this launch index to an allocation leave."""
        self._bring(placed, self.sizes.after_store(launch_index, placed.allocation.index))

    def copy(self, placed: AllocationRange, first_entry: int, end_entry: int, point: int) -> None:
        """A copy or fill has written these entries of an allocation, after `point` launches."""
        index = placed.allocation.index
        self._bring(placed, self.sizes.after_copy(point, index))
        for first, end in self._large.touched(placed, first_entry, end_entry):
            states = self.array[first:end]
            states >>= AFTER
            states *= (1 << AFTER) + 1
        if self._is_large(placed):
            self._copied[index].add(first_entry, end_entry, self._after[index])

    def _bring(self, placed: AllocationRange, snapshot: int | None) -> None:
        index = placed.allocation.index
        if snapshot == self._after[index]:
            return
        states = self._states(placed)
        if self._is_large(placed):
            taken = self.sizes.taken_from_neighbours(snapshot, index)
            for first, end in self._large.touched(placed, placed.first_entry, placed.end_entry):
                self.sizes.write_part(snapshot, index, first - placed.first_entry, self.array[first:end], AFTER)
        else:
            taken = self.sizes.write_classes(snapshot, index, states, AFTER)
        self.used[index, snapshot] = len(states), taken
        self._after[index] = snapshot

    def _is_large(self, placed: AllocationRange) -> bool:
        return self._large.middle(placed)[0] < placed.end_entry

    def _states(self, placed: AllocationRange) -> NDArray[np.uint8]:
        return self.array[placed.first_entry : placed.end_entry]


class _CopiedRanges:
    """Which snapshot's classes copies gave the entries of an allocation: of each entry the last copy counts."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._ends: list[int] = []
        self._snapshots: list[int | None] = []

    def add(self, first: int, end: int, snapshot: int | None) -> None:
        """A copy has written a range."""
        low, high = bisect_right(self._ends, first), bisect_left(self._firsts, end)
        kept = []
        if low < high and self._firsts[low] < first:
            kept.append((self._firsts[low], first, self._snapshots[low]))
        kept.append((first, end, snapshot))
        if low < high and self._ends[high - 1] > end:
            kept.append((end, self._ends[high - 1], self._snapshots[high - 1]))
        self._firsts[low:high] = [part[0] for part in kept]
        self._ends[low:high] = [part[1] for part in kept]
        self._snapshots[low:high] = [part[2] for part in kept]

    def within(self, first: int, end: int) -> Iterator[tuple[int, int, int | None]]:
        """The parts of a range that copies wrote: first, end, snapshot."""
        for at in range(bisect_right(self._ends, first), bisect_left(self._firsts, end)):
            yield max(self._firsts[at], first), min(self._ends[at], end), self._snapshots[at]
