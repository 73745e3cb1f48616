"""How the sizes of entries change between snapshots: whether a target chosen once holds."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from buddysim.analyses.finding import Finding, Value
from buddysim.analyses.options import Options
from buddysim.analyses.over_run import MEASURED, classes_at, snapshots_of_run
from buddysim.buddy.values import EntryValues
from buddysim.compress import SECTORS_OF_CLASS, UNKNOWN_CLASS
from buddysim.trace import Trace

ORDER = 50
SUMMARY = "entries that change their size class between snapshots"
COLUMNS = (
    "from_snapshot", "to_snapshot", "launches", "entries", "other_class_share", "more_sectors_share",
    "fewer_sectors_share",
)  # fmt: skip
_SECTORS = np.array([*SECTORS_OF_CLASS, *[0] * (UNKNOWN_CLASS + 1 - len(SECTORS_OF_CLASS))])


def analyse(trace: Trace, options: Options) -> Finding:
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
            before, after = (classes_at(values, at, allocation) for at in (one, other))
            known = (before != UNKNOWN_CLASS) & (after != UNKNOWN_CLASS)
            before, after = before[known], after[known]
            more = _SECTORS[after] - _SECTORS[before]
            counted += [len(before), (before != after).sum(), (more > 0).sum(), (more < 0).sum()]
        entries = int(counted[0])
        shares = [int(count) / entries if entries else None for count in counted[1:]]
        rows.append((number, number + 1, other.point - one.point, entries, *shares))
    return Finding("change of entries' size class", COLUMNS, rows, (MEASURED.format(options.compressor),))
