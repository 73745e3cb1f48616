"""Entry sizes at the snapshots of a run, for most analyses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from buddysim.base.errors import BuddysimError
from buddysim.buddy.entry_values import EntryValues
from buddysim.compress import UNKNOWN_CLASS
from buddysim.trace import Allocation, Snapshot, Trace

SIZES_NOTE = "sizes of captured data values, by {}; every entry takes its size class (Buddy Compression, Sec. 2.4)"
_WINDOW = 1 << 20
SAMPLED = "of allocations with sampled bytes, the sampled pages represent the others"


class AllocationClasses(NamedTuple):
    """An allocation at a snapshot.

    Attributes
    ----------
    counts : int64 (8,), entries of each size class, among entries with known size
    sampled : False: all entries are counted
    """

    allocation: Allocation
    counts: NDArray[np.int64]
    sampled: bool


def snapshots_of_run(trace: Trace, values: EntryValues) -> list[Snapshot]:
    """Return the snapshots with sizes that sample the run; without any, those for the replay of a launch.

    Raises
    ------
    BuddysimError
        if the trace has no data values
    """
    snapshots = [trace.snapshots[index] for index in values.snapshots]
    snapshots = [snapshot for snapshot in snapshots if not snapshot.for_replay] or snapshots
    if not snapshots:
        raise BuddysimError(
            f"{trace.path}: no data values: expected a trace with snapshots, for example traces/fdtd2048.bin"
        )
    return snapshots


def allocation_classes_at(trace: Trace, values: EntryValues, snapshot: Snapshot) -> Iterator[AllocationClasses]:
    """Yield the size classes of the device allocations of which a snapshot has sizes."""
    for allocation in trace.allocations:
        known = allocation.space == "device" and snapshot.index in values.snapshots_of(allocation.index)
        if known and allocation.entries:
            counts = values.counts(snapshot.index, allocation.index)
            if counts.sum():
                yield AllocationClasses(allocation, counts, values.is_sampled(snapshot.index, allocation.index))


def classes_at(
    values: EntryValues, snapshot: Snapshot, allocation: Allocation
) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """Yield the size class of every entry of an allocation, in windows of full pages with any known size.

    Yields
    ------
    first entry of a window, and its classes, uint8 (entries,), `UNKNOWN_CLASS` where it is unknown
    """
    first, window = -1, np.empty(0, np.uint8)
    for start, classes in values.known(snapshot.index, allocation.index):
        at = 0
        while at < len(classes):
            number = (start + at) // _WINDOW * _WINDOW
            if number != first:
                if first >= 0:
                    yield first, window
                first = number
                window = np.full(min(_WINDOW, allocation.entries - first), UNKNOWN_CLASS, np.uint8)
            part = classes[at : at + first + _WINDOW - (start + at)]
            window[start + at - first : start + at - first + len(part)] = part
            at += len(part)
    if first >= 0:
        yield first, window


def scale_to_allocation(classes: AllocationClasses) -> NDArray[np.float64]:
    """Scale the counts of size classes to all entries of the allocation."""
    return classes.counts.astype(np.float64) * (classes.allocation.entries / int(classes.counts.sum()))
