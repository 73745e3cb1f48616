"""Share of entries of each size class (Buddy Compression, ISCA version, Fig. 5b)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from buddysim.analyses.analysis_options import AnalysisOptions
from buddysim.analyses.analysis_result import AnalysisResult, Value
from buddysim.analyses.snapshot_classes import (
    MEASURED,
    SAMPLED,
    allocation_classes_at,
    scale_to_allocation,
    snapshots_of_run,
)
from buddysim.base.errors import BuddysimError
from buddysim.buddy.entry_values import EntryValues
from buddysim.compress import STUDY_CLASSES
from buddysim.trace import Trace

ORDER = 20
SUMMARY = "share of entries of each size class (Fig. 5b, ISCA version)"
READS = ("compressors",)
COLUMNS = ("compressor", "allocation", "snapshots", *(f"fraction_{size}B" for size in STUDY_CLASSES))
WHOLE = "all allocations"


def analyse(trace: Trace, options: AnalysisOptions) -> AnalysisResult:
    """A row for each compressor and allocation, the mean over the snapshots; the first of each compressor is of all."""
    rows: list[tuple[Value, ...]] = []
    sampled = False
    for name in options.compressors:
        values = EntryValues(trace, name)
        shares: dict[int, list[NDArray[np.float64]]] = {}
        whole = []
        for snapshot in snapshots_of_run(trace, values):
            found = list(allocation_classes_at(trace, values, snapshot))
            if not found:
                continue  # it knows allocations in host memory only
            sampled |= any(seen.sampled for seen in found)
            total = np.sum([scale_to_allocation(seen) for seen in found], axis=0)
            whole.append(total / total.sum())
            for seen in found:
                shares.setdefault(seen.allocation.index, []).append(seen.counts / seen.counts.sum())
        if not whole:
            raise BuddysimError(f"{trace.path}: has no values of device allocations: expected a trace with some")
        rows.append((name, WHOLE, len(whole), *map(float, np.mean(whole, axis=0))))
        for index, of_one in shares.items():
            rows.append((name, trace.allocations[index].name, len(of_one), *map(float, np.mean(of_one, axis=0))))
    notes = (MEASURED.format(", ".join(options.compressors)), *([SAMPLED] if sampled else ()))
    return AnalysisResult("share of entries of each size class, mean over the snapshots", COLUMNS, rows, notes)
