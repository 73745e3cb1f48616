"""The size class of every entry during a run."""

from __future__ import annotations

import numpy as np

from buddysim.buddy import SizeSource
from tests.reference.replay.space import RefAllocationRange


class RefSizes:
    """The current size classes of entries, and those of snapshots.

    Parameters
    ----------
    source : of the trace's sizes
    first_launch_index : of the first kernel that runs
    """

    def __init__(self, source: SizeSource, first_launch_index: int) -> None:
        self.source = source
        self.now: dict[int, int] = {}
        self.snapshots = source.values.snapshots
        early = [s for s in self.snapshots if self._point(s) <= first_launch_index]
        self.start = early[-1] if early else self.snapshots[0] if self.snapshots else None
        self.extrapolated = self.entries = 0
        self._read: dict[tuple[int | None, int], tuple[list[int], int]] = {}

    @property
    def extrapolated_mean_fraction(self) -> float:
        """Return the fraction of extrapolated classes, over all allocations and snapshots used."""
        entries = sum(len(classes) for classes, _ in self._read.values())
        return sum(taken for _, taken in self._read.values()) / entries if entries else 0.0

    def _point(self, snapshot: int) -> int:
        return self.source.trace.snapshots[snapshot].launch_index

    def _own(self, allocation_range: RefAllocationRange) -> list[int]:
        return self.source.values.snapshots_of(allocation_range.allocation.index)

    def _classes(self, snapshot: int | None, allocation_range: RefAllocationRange) -> tuple[list[int], int]:
        key = snapshot, allocation_range.allocation.index
        if key not in self._read:
            classes = np.zeros(allocation_range.allocation.entries, np.uint8)
            taken = self.source.write_classes(snapshot, allocation_range.allocation.index, classes)
            self._read[key] = classes.tolist(), taken
        return self._read[key]

    def begin(self, allocation_range: RefAllocationRange) -> None:
        """Give the allocation's entries their first classes."""
        own = self._own(allocation_range)
        snapshot = self.start
        if own and self.start is not None:
            order = self.snapshots.index(self.start)
            snapshot = next((s for s in own if self.snapshots.index(s) >= order), own[-1])
        classes, taken = self._classes(snapshot, allocation_range)
        self.now.update(enumerate(classes, allocation_range.first))
        self.extrapolated += taken
        self.entries += len(classes)

    def written(self, allocation_range: RefAllocationRange, entry: int, launch_index: int) -> int | None:
        """Return the class that a kernel's store gives an entry; None if it never changes."""
        own = self._own(allocation_range)
        if not own:
            return None
        snapshot = next((s for s in own if self._point(s) >= launch_index + 1), own[-1])
        return self._classes(snapshot, allocation_range)[0][entry - allocation_range.first]

    def copied(self, allocation_range: RefAllocationRange, entry: int, launches: int) -> int | None:
        """Return the class that a copy after `launches` launches gives an entry; None if it never changes."""
        own = self._own(allocation_range)
        if not own:
            return None
        later = [s for s in own if self._point(s) >= launches]
        snapshot = [s for s in later if self._point(s) == self._point(later[0])][-1] if later else own[-1]
        return self._classes(snapshot, allocation_range)[0][entry - allocation_range.first]
