"""Entry sizes during a run (docs/explanation/buddy.md, Sizes of entries)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from buddysim.base.errors import BuddysimError
from buddysim.buddy.distribution import DEFAULT_DISTRIBUTION, Distribution, checked_seed
from buddysim.buddy.entry_sizes import fill_unsampled
from buddysim.buddy.entry_values import EntryValues, put_classes
from buddysim.buddy.known import KnownClasses
from buddysim.compress import DEFAULT, ENTRY_BYTES, STUDY_CLASSES
from buddysim.trace import Allocation, Trace

_WHOLE = STUDY_CLASSES.index(ENTRY_BYTES)
_CHUNK_ENTRIES = 1 << 16
_LAST_LAUNCH_INDEX = 2**64 - 1


class Writers(NamedTuple):
    """The kernels whose stores leave an allocation's entries with the sizes of one snapshot; none if first > last.

    Attributes
    ----------
    first, last : launch indices
    """

    first: int
    last: int


class SizeSource:
    """Size classes of a trace's entries at its snapshots.

    Parameters
    ----------
    trace : the trace
    compressor : its name
    seed, size_distribution : seed and distribution of the synthetic sizes
    """

    def __init__(
        self, trace: Trace, compressor: str = DEFAULT, seed: int = 0, size_distribution: str = DEFAULT_DISTRIBUTION
    ) -> None:
        self.trace, self.compressor, self.seed = trace, compressor, checked_seed(seed)
        self.distribution = Distribution.load(size_distribution)
        self.values = EntryValues(trace, compressor)

    def first_snapshot(self, launch_index: int) -> int | None:
        """Return the snapshot with which a run from this launch index begins; None if no snapshot has sizes."""
        snapshots = self.values.snapshots
        earlier = [s for s in snapshots if self.trace.snapshots[s].launch_index <= launch_index]
        return earlier[-1] if earlier else snapshots[0] if snapshots else None

    def at_allocation(self, launch_index: int, allocation: int) -> int | None:
        """Return the snapshot with the first sizes of an allocation, in a run from this launch index on."""
        first = self.first_snapshot(launch_index)
        return None if first is None else self.values.nearest(first, allocation)

    def after_store(self, launch_index: int, allocation: int) -> int | None:
        """Return the snapshot with the sizes after this launch's stores: the first one after it, else the last."""
        snapshots = self.values.snapshots_of(allocation)
        at = bisect_left(snapshots, launch_index + 1, key=self._point)
        return snapshots[min(at, len(snapshots) - 1)] if snapshots else None

    def after_copy(self, point: int, allocation: int) -> int | None:
        """Return the snapshot whose sizes a memcpy or memset leaves that follows `point` launches.

        A snapshot with the same launch index may precede or follow the memcpy; of several, the last is taken.
        """
        snapshots = self.values.snapshots_of(allocation)
        if not snapshots:
            return None
        at = min(bisect_left(snapshots, point, key=self._point), len(snapshots) - 1)
        return snapshots[bisect_right(snapshots, self._point(snapshots[at]), key=self._point) - 1]

    def writers_before(self, snapshot: int | None, allocation: int) -> Writers:
        """Return the kernels whose stores to an allocation leave the sizes of this snapshot (`after_store`)."""
        snapshots = self.values.snapshots_of(allocation)
        if snapshot is None:
            return Writers(0, _LAST_LAUNCH_INDEX)
        at = snapshots.index(snapshot)
        first = self._point(snapshots[at - 1]) if at else 0
        last = self._point(snapshot) - 1 if at + 1 < len(snapshots) else _LAST_LAUNCH_INDEX
        return Writers(first, last) if first <= last else Writers(1, 0)

    def _point(self, snapshot: int) -> int:
        return self.trace.snapshots[snapshot].launch_index

    def write_classes(self, snapshot: int | None, allocation: int, out: NDArray[np.uint8], shift: int = 0) -> int:
        """Write the class number (0 to 7) of every entry of an allocation.

        Parameters
        ----------
        snapshot : index of the snapshot; None: no snapshot has sizes
        allocation : index of the allocation
        out : uint8, one per entry of the allocation
        shift : bit of the byte at which the class begins; lower bits stay

        Returns
        -------
        number of entries with extrapolated sizes (those of the nearest sampled page)
        """
        described = self.trace.allocations[allocation]
        if len(out) != described.entries:
            raise BuddysimError(
                f"{self.trace.path}: allocation {described.name}: {len(out)} entries, expected {described.entries}"
            )
        source = self.values.nearest(snapshot, allocation) if snapshot is not None else None
        if source is not None:
            page_entries = self.values.write(source, allocation, out, shift)
            filled = fill_unsampled(out, page_entries, shift)
            if filled < len(out) or not len(out):
                return filled
        self._check_can_sample(described)
        self._draw(described, 0, out, shift)
        return 0

    def taken_from_neighbours(self, snapshot: int | None, allocation: int) -> int:
        """Return what `write_classes` returns, without writing; the errors are the same."""
        described = self.trace.allocations[allocation]
        parts = self._parts(snapshot, allocation)
        if parts is None:
            self._check_can_sample(described)
        return parts.filled if parts else 0

    def write_part(
        self, snapshot: int | None, allocation: int, first: int, out: NDArray[np.uint8], shift: int = 0
    ) -> None:
        """Write classes as `write_classes` does, for the entries from `first` on.

        The first call for an allocation reads all its sizes in the trace.
        """
        parts = self._parts(snapshot, allocation)
        if parts is None:
            self._draw(self.trace.allocations[allocation], first, out, shift)
        else:
            put_classes(out, parts.part(first, len(out)), shift)

    def _parts(self, snapshot: int | None, allocation: int) -> KnownClasses | None:
        """Return the sizes that the trace has of an allocation, or None."""
        source = self.values.nearest(snapshot, allocation) if snapshot is not None else None
        parts = self.values.parts(source, allocation) if source is not None else None
        return parts if parts and parts.filled < self.trace.allocations[allocation].entries else None

    def _check_can_sample(self, allocation: Allocation) -> None:
        if allocation.space != "host":
            self.distribution.check_algorithm(self.compressor, f"{self.trace.path}: allocation {allocation.name}")

    def _draw(self, allocation: Allocation, first: int, out: NDArray[np.uint8], shift: int) -> None:
        """Sample the classes of an allocation's entries from `first` on; entries in host memory are raw."""
        for at in range(0, len(out), _CHUNK_ENTRIES):
            part = out[at : at + _CHUNK_ENTRIES]
            synthetic = np.full(len(part), _WHOLE, dtype=np.uint8)
            if allocation.space != "host":
                self.distribution.write(synthetic, self.seed, allocation.index, first + at)
            put_classes(part, synthetic, shift)

    @property
    def synthetic_allocations(self) -> list[str]:
        """Names of the device allocations without data values, whose sizes are synthetic."""
        return [a.name for a in self._device if not self.values.snapshots_of(a.index)]

    @property
    def synthetic_fraction(self) -> float:
        """Fraction of the entries of device allocations whose sizes are synthetic, 0 to 1."""
        synthetic = sum(a.entries for a in self._device if not self.values.snapshots_of(a.index))
        return synthetic / max(1, sum(a.entries for a in self._device))

    @property
    def _device(self) -> list[Allocation]:
        return [a for a in self.trace.allocations if a.space == "device" and a.bytes]

    @property
    def assumptions(self) -> dict[str, str]:
        """Return the assumptions about sizes, by subject."""
        assumed = {"algorithm": self.compressor}
        device = self._device
        pairs = [(s, a.index) for a in device for s in self.values.snapshots_of(a.index)]
        computed = sum(self.values.is_computed(*pair) for pair in pairs)
        if pairs:
            assumed["source"] = (
                f"{len(pairs) - computed} size maps of the trace, {computed} computed from contents, "
                f"at {len(self.values.snapshots)} points of the run"
            )
            assumed["between"] = (
                "an entry keeps its size until it is written back, then it has that of the first snapshot after the "
                "kernel that stored to it last"
            )
            assumed["unsampled"] = "an entry of unknown size takes that of the nearest sampled page of its allocation"
        synthetic = self.synthetic_allocations
        if synthetic:
            names = ", ".join(synthetic[:8]) + (f" and {len(synthetic) - 8} more" if len(synthetic) > 8 else "")
            assumed["synthetic"] = (
                f"no values of {names}: sizes sampled from {self.distribution.name}, seed {self.seed}, the same over "
                f"the whole run ({self.distribution.source})"
            )
        missing = [a.name for a in device if 0 < len(self.values.snapshots_of(a.index)) < len(self.values.snapshots)]
        if missing:
            assumed["missing_sizes"] = (
                f"{len(missing)} allocations are not in every snapshot: where they are missing, they have the sizes of "
                "the next snapshot that has them, or of the last one"
            )
        return assumed
