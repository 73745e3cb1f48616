"""Spatial pattern of entry sizes (Buddy Compression, Fig. 6): a row for each page of 8 KB with its 64 entries."""

from __future__ import annotations

import numpy as np

from buddysim.analyses.analysis_options import AnalysisOptions
from buddysim.analyses.analysis_result import AnalysisResult, Value
from buddysim.analyses.snapshot_classes import SIZES_NOTE, classes_at, snapshots_of_run
from buddysim.buddy.entry_values import EntryValues
from buddysim.buddy.known import PAGE_ENTRIES
from buddysim.compress import STUDY_CLASSES, UNKNOWN_CLASS
from buddysim.trace import Trace

ORDER = 40
SUMMARY = "size of every entry, a row for each page of 8 KB (Fig. 6)"
READS = ("compressors",)
COLUMNS = ("allocation", "page", *(f"entry{number}_bytes" for number in range(PAGE_ENTRIES)))
SHOWN = ("allocation", "pages", "uniform_pages_fraction", "same_as_neighbour_fraction")
_BYTES = np.array([*STUDY_CLASSES, *[-1] * (UNKNOWN_CLASS + 1 - len(STUDY_CLASSES))])


def analyse(trace: Trace, options: AnalysisOptions) -> AnalysisResult:
    """A row for each page at the middle snapshot of the run; the size of an unknown entry is None."""
    values = EntryValues(trace, options.compressor)
    snapshots = snapshots_of_run(trace, values)
    snapshot = snapshots[len(snapshots) // 2]
    rows: list[tuple[Value, ...]] = []
    shown: list[tuple[Value, ...]] = []
    for allocation in trace.allocations:
        if allocation.space != "device" or snapshot.index not in values.snapshots_of(allocation.index):
            continue
        known = [
            ((first + at) // PAGE_ENTRIES, page)
            for first, classes in classes_at(values, snapshot, allocation)
            for at in range(0, len(classes), PAGE_ENTRIES)
            if ((page := _BYTES[classes[at : at + PAGE_ENTRIES]]) >= 0).any()
        ]
        for number, page in known:
            padded = [int(size) if size >= 0 else None for size in page] + [None] * (PAGE_ENTRIES - len(page))
            rows.append((allocation.name, number, *padded))
        if known:
            same_as_neighbour = np.mean(
                [float((page[1:] == page[:-1]).mean()) if len(page) > 1 else 1.0 for _, page in known]
            )
            uniform = np.mean([float((page == page[0]).all()) for _, page in known])
            shown.append((allocation.name, len(known), float(uniform), float(same_as_neighbour)))
    title = f"size of every entry after {snapshot.launch_index} launches, {len(rows)} pages"
    notes = (SIZES_NOTE.format(options.compressor), "the sizes themselves are written with -o")
    return AnalysisResult(title, COLUMNS, rows, notes, AnalysisResult(title, SHOWN, shown))
