"""Entry sizes at the snapshots over a run: what most analyses begin with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from buddysim.base.errors import BuddysimError
from buddysim.buddy.entry_values import EntryValues
from buddysim.compress import UNKNOWN_CLASS
from buddysim.trace import Allocation, Snapshot, Trace

MEASURED = "sizes of real values, by {}; entries placed freely in 8 size classes (Buddy Compression, Sec. 2.4)"
_WINDOW = 1 << 20
SAMPLED = "of allocations whose bytes were sampled, the pages that are there stand for the others"


class AllocationClasses(NamedTuple):
    """An allocation at a snapshot.

    Attributes
    ----------
    counts : int64 (8,), entries of each size class, of those whose size is known
    sampled : not of all entries
    """

    allocation: Allocation
    counts: NDArray[np.int64]
    sampled: bool


def snapshots_of_run(trace: Trace, values: EntryValues) -> list[Snapshot]:
    """The snapshots with sizes that are samples of the run; where there are none, those for the replay of a launch.

    Raises
    ------
    BuddysimError
        where the trace has no values
    """
    found = [trace.snapshots[index] for index in values.snapshots]
    found = [one for one in found if not one.for_replay] or found
    if not found:
        raise BuddysimError(
            f"{trace.path}: has no values: expected a trace with snapshots, for example traces/fdtd2048.bin"
        )
    return found


def allocation_classes_at(trace: Trace, values: EntryValues, snapshot: Snapshot) -> Iterator[AllocationClasses]:
    """The device allocations that a snapshot has sizes of."""
    for allocation in trace.allocations:
        known = allocation.space == "device" and snapshot.index in values.snapshots_of(allocation.index)
        if known and allocation.entries:
            counts = values.counts(snapshot.index, allocation.index)
            if counts.sum():
                yield AllocationClasses(allocation, counts, values.is_sampled(snapshot.index, allocation.index))


def classes_at(
    values: EntryValues, snapshot: Snapshot, allocation: Allocation
) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """The size class of every entry of an allocation, in windows of whole pages of which any is known.

    Yields
    ------
    first entry of a window, and its classes, uint8 (entries,), `UNKNOWN_CLASS` where one isn't known
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


def scale_to_allocation(seen: AllocationClasses) -> NDArray[np.float64]:
    """Entries of each size class of the whole allocation."""
    return seen.counts.astype(np.float64) * (seen.allocation.entries / int(seen.counts.sum()))
