"""The size classes of each entry during a run: the current one, and the one after a store of the running kernels."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from buddysim.buddy import SizeSource
from buddysim.replay.address_space import AddressSpace, AllocationRange
from buddysim.replay.lazy_allocations import LazyAllocations
from buddysim.replay.lazy_array import lazy_zeros

AFTER = 4  # first bit of the class after a store


class EntryClasses:
    """The array of size classes that the engine reads and changes.

    It holds the current class and, per allocation, the class of one snapshot. If kernels of several snapshots store to
    one allocation at once, its snapshot changes from chunk to chunk. Segments of a large allocation get their
    classes when they are materialized.

    Parameters
    ----------
    address_space : entry numbers of the allocations
    sizes : the entries' sizes
    launch_index : of the first kernel that runs
    lazy_allocations : the materialized segments of large allocations

    Attributes
    ----------
    array : uint8 (entries,), class now | class after a store << 4
    extrapolated_entries : entries whose class at their allocation is that of the nearest sampled page
    used : (entries, extrapolated entries) by allocation and snapshot, of the classes that the run used
    """

    def __init__(
        self, address_space: AddressSpace, sizes: SizeSource, launch_index: int, lazy_allocations: LazyAllocations
    ) -> None:
        self.sizes, self._launch_index, self._lazy_allocations = sizes, launch_index, lazy_allocations
        self.array = lazy_zeros(address_space.n_entries)
        self.extrapolated_entries = 0
        self.used: dict[tuple[int, int | None], tuple[int, int]] = {}
        self._after: dict[int, int | None] = {}  # by allocation: snapshot of the class after a store
        self._first_snapshot: dict[int, int | None] = {}  # by large allocation
        self._copied_ranges: dict[int, _CopiedRanges] = {}  # by large allocation

    def begin(self, allocation_range: AllocationRange) -> None:
        """Give a new allocation its classes."""
        index, classes = allocation_range.allocation.index, self._classes(allocation_range)
        snapshot = self._after[index] = self.sizes.at_allocation(self._launch_index, index)
        if self._is_large(allocation_range):
            self._first_snapshot[index], self._copied_ranges[index] = snapshot, _CopiedRanges()
            n_extrapolated = self.sizes.taken_from_neighbours(snapshot, index)
            for first, end in self._lazy_allocations.materialized(
                allocation_range, allocation_range.first_entry, allocation_range.end_entry
            ):
                self.materialize(allocation_range, first, end)
        else:
            n_extrapolated = self.sizes.write_classes(snapshot, index, classes)
            classes *= (1 << AFTER) + 1
        self.extrapolated_entries += n_extrapolated
        self.used[index, snapshot] = len(classes), n_extrapolated

    def materialize(self, allocation_range: AllocationRange, first_entry: int, end_entry: int) -> None:
        """Make the classes of a range of a large allocation, with the effect of everything since its allocation."""
        index = allocation_range.allocation.index
        classes = self.array[first_entry:end_entry]
        offset = first_entry - allocation_range.first_entry
        self.sizes.write_part(self._first_snapshot[index], index, offset, classes)
        for first, end, snapshot in self._copied_ranges[index].within(first_entry, end_entry):
            part = classes[first - first_entry : end - first_entry]
            self.sizes.write_part(snapshot, index, first - allocation_range.first_entry, part)
        self.sizes.write_part(self._after[index], index, offset, classes, AFTER)

    def end(self, allocation_range: AllocationRange) -> None:
        """Forget a freed allocation."""
        index = allocation_range.allocation.index
        del self._after[index]
        self._first_snapshot.pop(index, None)
        self._copied_ranges.pop(index, None)

    def writers(self, allocation_range: AllocationRange) -> tuple[int, int]:
        """Return the first and last launch index whose stores give the classes of the array; reversed if none does."""
        return self.sizes.writers_before(
            self._after[allocation_range.allocation.index], allocation_range.allocation.index
        )

    def after_store(self, allocation_range: AllocationRange, launch_index: int) -> None:
        """Set the classes that stores of the kernel of a launch index give an allocation's entries."""
        self._use_snapshot(allocation_range, self.sizes.after_store(launch_index, allocation_range.allocation.index))

    def copy(self, allocation_range: AllocationRange, first_entry: int, end_entry: int, launch_index: int) -> None:
        """Apply a memcpy or memset that wrote entries of an allocation after `launch_index` launches."""
        index = allocation_range.allocation.index
        self._use_snapshot(allocation_range, self.sizes.after_copy(launch_index, index))
        for first, end in self._lazy_allocations.materialized(allocation_range, first_entry, end_entry):
            classes = self.array[first:end]
            classes >>= AFTER
            classes *= (1 << AFTER) + 1
        if self._is_large(allocation_range):
            self._copied_ranges[index].add(first_entry, end_entry, self._after[index])

    def _use_snapshot(self, allocation_range: AllocationRange, snapshot: int | None) -> None:
        index = allocation_range.allocation.index
        if snapshot == self._after[index]:
            return
        classes = self._classes(allocation_range)
        if self._is_large(allocation_range):
            n_extrapolated = self.sizes.taken_from_neighbours(snapshot, index)
            for first, end in self._lazy_allocations.materialized(
                allocation_range, allocation_range.first_entry, allocation_range.end_entry
            ):
                self.sizes.write_part(
                    snapshot, index, first - allocation_range.first_entry, self.array[first:end], AFTER
                )
        else:
            n_extrapolated = self.sizes.write_classes(snapshot, index, classes, AFTER)
        self.used[index, snapshot] = len(classes), n_extrapolated
        self._after[index] = snapshot

    def _is_large(self, allocation_range: AllocationRange) -> bool:
        return self._lazy_allocations.segment_range(allocation_range)[0] < allocation_range.end_entry

    def _classes(self, allocation_range: AllocationRange) -> NDArray[np.uint8]:
        return self.array[allocation_range.first_entry : allocation_range.end_entry]


class _CopiedRanges:
    """Ranges of an allocation that copies wrote, with the snapshot of their classes; the last copy counts."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._ends: list[int] = []
        self._snapshots: list[int | None] = []

    def add(self, first: int, end: int, snapshot: int | None) -> None:
        """Add the range that a copy wrote."""
        low, high = bisect_right(self._ends, first), bisect_left(self._firsts, end)
        ranges = []
        if low < high and self._firsts[low] < first:
            ranges.append((self._firsts[low], first, self._snapshots[low]))
        ranges.append((first, end, snapshot))
        if low < high and self._ends[high - 1] > end:
            ranges.append((end, self._ends[high - 1], self._snapshots[high - 1]))
        self._firsts[low:high] = [part[0] for part in ranges]
        self._ends[low:high] = [part[1] for part in ranges]
        self._snapshots[low:high] = [part[2] for part in ranges]

    def within(self, first: int, end: int) -> Iterator[tuple[int, int, int | None]]:
        """Yield the parts of a range that copies wrote: first, end, snapshot."""
        for at in range(bisect_right(self._ends, first), bisect_left(self._firsts, end)):
            yield max(self._firsts[at], first), min(self._ends[at], end), self._snapshots[at]
