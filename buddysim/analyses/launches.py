"""Changes of entry sizes while the traced launches run, and overflow of fixed targets (Buddy Compression, Fig. 8: over
one iteration of a training)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from buddysim.analyses.analysis_options import AnalysisOptions
from buddysim.analyses.analysis_result import AnalysisResult, DoesNotApply, Value
from buddysim.analyses.snapshot_classes import snapshots_of_run
from buddysim.analyses.target_choice import select_targets, target_source_text
from buddysim.buddy.entry_values import EntryValues
from buddysim.buddy.targets import Target
from buddysim.compress import ENTRY_BYTES, SECTORS_OF_CLASS, STUDY_CLASSES, UNKNOWN_CLASS
from buddysim.trace import Trace

ORDER = 65
SUMMARY = "fraction of entries that change, and that overflow fixed targets, while launches run (Fig. 8)"
READS = ("compressors", "threshold", "profile_from")
COLUMNS = (
    "launch", "ratio", "class_change_fraction", "more_sectors_fraction", "fewer_sectors_fraction",
    "overflow_fraction_naive", "overflow_fraction_final",
)  # fmt: skip
_MAX_SHOWN = 20
_POLICIES = ("naive", "final")
_UNKNOWN = UNKNOWN_CLASS + 1 - len(STUDY_CLASSES)
_SECTORS = np.array([*SECTORS_OF_CLASS, *[0] * _UNKNOWN])
_BYTES = np.array([*STUDY_CLASSES, *[0] * _UNKNOWN])


def analyse(trace: Trace, options: AnalysisOptions) -> AnalysisResult:
    """A row for each launch index at which the trace has sizes, compared with the first of them."""
    values = EntryValues(trace, options.compressor)
    snapshots_of_run(trace, values)
    snapshots = [one for one in map(trace.snapshots.__getitem__, values.snapshots) if one.for_replay]
    if len({one.launch_index for one in snapshots}) < 2:
        raise DoesNotApply(
            f"{trace.path}: no sizes while its launches run: expected for example a trace of 'workloads make'"
        )
    targets = [select_targets(trace, options.profile(policy=policy), options) for policy in _POLICIES]
    first: dict[int, NDArray[np.uint8]] = {}
    counted: dict[int, NDArray[np.int64]] = {}
    rows: list[tuple[Value, ...]] = []
    for snapshot in sorted(snapshots, key=lambda one: one.launch_index):
        for allocation in trace.allocations:
            if allocation.space != "device" or snapshot.index not in values.snapshots_of(allocation.index):
                continue
            now = np.full(allocation.entries, UNKNOWN_CLASS, np.uint8)
            values.write(snapshot.index, allocation.index, now)
            before = first.setdefault(allocation.index, now)
            counted[allocation.index] = _count(before, now, [each.of(allocation.index) for each in targets])
        entries, stored, *changed = np.sum(list(counted.values()), axis=0).tolist()
        ratio = entries * ENTRY_BYTES / stored if stored else None
        rows.append((snapshot.launch_index, ratio, *(count / entries if entries else None for count in changed)))
    notes = (
        f"sizes of captured data values, by {options.compressor}; fractions of all entries: changed since the first "
        f"snapshot, and overflowing fixed targets ({target_source_text(options)}, threshold {options.threshold:g})",
    )
    shown = (
        rows if len(rows) <= _MAX_SHOWN else [rows[at] for at in np.linspace(0, len(rows) - 1, _MAX_SHOWN, dtype=int)]
    )
    return AnalysisResult("changes while launches run", COLUMNS, rows, notes, AnalysisResult("", COLUMNS, shown))


def _count(before: NDArray[np.uint8], now: NDArray[np.uint8], targets: Sequence[Target]) -> NDArray[np.int64]:
    """Count entries: known, bytes of their classes, of another class, with more, with fewer sectors, overflowing each
    target."""
    known = (before != UNKNOWN_CLASS) & (now != UNKNOWN_CLASS)
    before, now = before[known], now[known]
    more = _SECTORS[now] - _SECTORS[before]
    counts = [len(now), _BYTES[now].sum(), (now != before).sum(), (more > 0).sum(), (more < 0).sum()]
    counts += [(_BYTES[now] > target.device_bytes_per_entry).sum() for target in targets]
    return np.array(counts, np.int64)
