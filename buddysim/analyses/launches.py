"""How entries' sizes change while the traced launches run, and whether targets that stay hold (Buddy Compression,
Fig. 8: over one iteration of a training)."""

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
SUMMARY = "entries that change while the traced launches run, and that overflow targets that stay (Fig. 8)"
READS = ("compressors", "threshold", "profile_from")
COLUMNS = (
    "launch", "ratio", "class_change_fraction", "more_sectors_fraction", "fewer_sectors_fraction",
    "overflow_fraction_naive", "overflow_fraction_final",
)  # fmt: skip
_MOST_SHOWN = 20
_POLICIES = ("naive", "final")
_UNKNOWN = UNKNOWN_CLASS + 1 - len(STUDY_CLASSES)
_SECTORS = np.array([*SECTORS_OF_CLASS, *[0] * _UNKNOWN])
_BYTES = np.array([*STUDY_CLASSES, *[0] * _UNKNOWN])


def analyse(trace: Trace, options: AnalysisOptions) -> AnalysisResult:
    """A row for each moment of the traced launches at which the trace has sizes, beside the first of them."""
    values = EntryValues(trace, options.compressor)
    snapshots_of_run(trace, values)
    moments = [one for one in map(trace.snapshots.__getitem__, values.snapshots) if one.for_replay]
    if len({one.launch_index for one in moments}) < 2:
        raise DoesNotApply(
            f"{trace.path}: has no sizes while its launches run: expected a trace of 'workloads make', for example"
        )
    targets = [select_targets(trace, options.profile(policy=policy), options) for policy in _POLICIES]
    first: dict[int, NDArray[np.uint8]] = {}
    counted: dict[int, NDArray[np.int64]] = {}
    rows: list[tuple[Value, ...]] = []
    for moment in sorted(moments, key=lambda one: one.launch_index):
        for allocation in trace.allocations:
            if allocation.space != "device" or moment.index not in values.snapshots_of(allocation.index):
                continue
            now = np.full(allocation.entries, UNKNOWN_CLASS, np.uint8)
            values.write(moment.index, allocation.index, now)
            before = first.setdefault(allocation.index, now)
            counted[allocation.index] = _count(before, now, [each.of(allocation.index) for each in targets])
        entries, stored, *changed = np.sum(list(counted.values()), axis=0).tolist()
        ratio = entries * ENTRY_BYTES / stored if stored else None
        rows.append((moment.launch_index, ratio, *(count / entries if entries else None for count in changed)))
    notes = (
        f"sizes of real values, by {options.compressor}; shares are of all entries: beside the first moment, and under "
        f"targets that stay ({target_source_text(options)}, threshold {options.threshold:g})",
    )
    shown = (
        rows if len(rows) <= _MOST_SHOWN else [rows[at] for at in np.linspace(0, len(rows) - 1, _MOST_SHOWN, dtype=int)]
    )
    return AnalysisResult("change while launches run", COLUMNS, rows, notes, AnalysisResult("", COLUMNS, shown))


def _count(before: NDArray[np.uint8], now: NDArray[np.uint8], targets: Sequence[Target]) -> NDArray[np.int64]:
    """Entries that are known, their bytes in their classes, of another class, of more and fewer sectors, and that
    overflow each target."""
    known = (before != UNKNOWN_CLASS) & (now != UNKNOWN_CLASS)
    before, now = before[known], now[known]
    more = _SECTORS[now] - _SECTORS[before]
    found = [len(now), _BYTES[now].sum(), (now != before).sum(), (more > 0).sum(), (more < 0).sum()]
    found += [(_BYTES[now] > target.device_bytes_per_entry).sum() for target in targets]
    return np.array(found, np.int64)
