"""Compression ratio over the run (Buddy Compression, Fig. 3), by compressor (ISCA version, Fig. 5a)."""

from __future__ import annotations

from statistics import geometric_mean

from buddysim.analyses.analysis_options import AnalysisOptions
from buddysim.analyses.analysis_result import AnalysisResult, Value
from buddysim.analyses.snapshot_classes import (
    SAMPLED,
    SIZES_NOTE,
    allocation_classes_at,
    scale_to_allocation,
    snapshots_of_run,
)
from buddysim.buddy.entry_values import EntryValues
from buddysim.compress import ENTRY_BYTES, STUDY_CLASSES
from buddysim.trace import Trace

ORDER = 10
SUMMARY = "compression ratio over the run, by compressor (Fig. 3)"
READS = ("compressors",)
COLUMNS = ("compressor", "snapshot", "launches", "allocations", "allocated_bytes", "stored_bytes", "ratio")


def analyse(trace: Trace, options: AnalysisOptions) -> AnalysisResult:
    """A row for each compressor and snapshot: bytes of all entries over bytes of their size classes."""
    rows: list[tuple[Value, ...]] = []
    sampled = False
    for name in options.compressors:
        values = EntryValues(trace, name)
        for number, snapshot in enumerate(snapshots_of_run(trace, values)):
            device_classes = list(allocation_classes_at(trace, values, snapshot))
            sampled |= any(classes.sampled for classes in device_classes)
            allocated = sum(classes.allocation.entries for classes in device_classes) * ENTRY_BYTES
            stored = round(sum(float(scale_to_allocation(classes) @ STUDY_CLASSES) for classes in device_classes))
            ratio = allocated / stored if stored else None
            rows.append((name, number, snapshot.launch_index, len(device_classes), allocated, stored, ratio))
    means = (f"{name} {_mean(rows, name)}" for name in options.compressors)
    notes = (
        f"geometric mean over the snapshots: {', '.join(means)}",
        SIZES_NOTE.format(", ".join(options.compressors)),
        *([SAMPLED] if sampled else ()),
    )
    return AnalysisResult("compression ratio over the run", COLUMNS, rows, notes)


def _mean(rows: list[tuple[Value, ...]], compressor: str) -> str:
    ratios = [row[-1] for row in rows if row[0] == compressor]
    known = [ratio for ratio in ratios if isinstance(ratio, float)]
    return f"{geometric_mean(known):.2f}" if len(known) == len(ratios) else "none: a snapshot has only zeros"
