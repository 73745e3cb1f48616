"""Changes of entries' size classes between snapshots: whether a target ratio fits the whole run."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from buddysim.analyses.analysis_options import AnalysisOptions
from buddysim.analyses.analysis_result import AnalysisResult, Value
from buddysim.analyses.snapshot_classes import SIZES_NOTE, classes_at, snapshots_of_run
from buddysim.buddy.entry_values import EntryValues
from buddysim.compress import SECTORS_OF_CLASS, UNKNOWN_CLASS
from buddysim.trace import Trace

ORDER = 50
SUMMARY = "fraction of entries that change their size class between snapshots"
READS = ("compressors",)
COLUMNS = (
    "from_snapshot", "to_snapshot", "launches", "entries", "class_change_fraction", "more_sectors_fraction",
    "fewer_sectors_fraction",
)  # fmt: skip
Windows = Iterator[tuple[int, NDArray[np.uint8]]]
_SECTORS = np.array([*SECTORS_OF_CLASS, *[0] * (UNKNOWN_CLASS + 1 - len(SECTORS_OF_CLASS))])


def analyse(trace: Trace, options: AnalysisOptions) -> AnalysisResult:
    """A row for each pair of neighbouring snapshots: entries whose class is known in both."""
    values = EntryValues(trace, options.compressor)
    snapshots = snapshots_of_run(trace, values)
    rows: list[tuple[Value, ...]] = []
    for number, (one, other) in enumerate(pairwise(snapshots)):
        counted = np.zeros(4, np.int64)
        for allocation in trace.allocations:
            both = {one.index, other.index} <= set(values.snapshots_of(allocation.index))
            if allocation.space != "device" or not both:
                continue
            for before, after in _in_both(*(classes_at(values, at, allocation) for at in (one, other))):
                more = _SECTORS[after] - _SECTORS[before]
                counted += [len(before), (before != after).sum(), (more > 0).sum(), (more < 0).sum()]
        entries = int(counted[0])
        fractions = [int(count) / entries if entries else None for count in counted[1:]]
        rows.append((number, number + 1, other.launch_index - one.launch_index, entries, *fractions))
    return AnalysisResult("changes of entries' size classes", COLUMNS, rows, (SIZES_NOTE.format(options.compressor),))


def _in_both(one: Windows, other: Windows) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.uint8]]]:
    """Yield the classes of entries that are known at two snapshots, from windows of both."""
    left, right = next(one, None), next(other, None)
    while left is not None and right is not None:
        if left[0] == right[0]:
            known = (left[1] != UNKNOWN_CLASS) & (right[1] != UNKNOWN_CLASS)
            yield left[1][known], right[1][known]
            left, right = next(one, None), next(other, None)
        elif left[0] < right[0]:
            left = next(one, None)
        else:
            right = next(other, None)
