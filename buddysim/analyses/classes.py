"""Fraction of entries of each size class (Buddy Compression, ISCA version, Fig. 5b)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from buddysim.analyses.analysis_options import AnalysisOptions
from buddysim.analyses.analysis_result import AnalysisResult, Value
from buddysim.analyses.snapshot_classes import (
    SAMPLED,
    SIZES_NOTE,
    allocation_classes_at,
    scale_to_allocation,
    snapshots_of_run,
)
from buddysim.base.errors import BuddysimError
from buddysim.buddy.entry_values import EntryValues
from buddysim.compress import STUDY_CLASSES
from buddysim.trace import Trace

ORDER = 20
SUMMARY = "fraction of entries of each size class (Fig. 5b, ISCA version)"
READS = ("compressors",)
COLUMNS = ("compressor", "allocation", "snapshots", *(f"fraction_{size}B" for size in STUDY_CLASSES))
WHOLE = "all allocations"


def analyse(trace: Trace, options: AnalysisOptions) -> AnalysisResult:
    """A row for each compressor and allocation, the mean over the snapshots; first a row for all allocations.

    Raises
    ------
    BuddysimError
        if the trace has no data values of device allocations
    """
    rows: list[tuple[Value, ...]] = []
    sampled = False
    for name in options.compressors:
        values = EntryValues(trace, name)
        fractions: dict[int, list[NDArray[np.float64]]] = {}
        totals = []
        for snapshot in snapshots_of_run(trace, values):
            device_classes = list(allocation_classes_at(trace, values, snapshot))
            if not device_classes:
                continue  # the snapshot has sizes of host allocations only
            sampled |= any(classes.sampled for classes in device_classes)
            total = np.sum([scale_to_allocation(classes) for classes in device_classes], axis=0)
            totals.append(total / total.sum())
            for classes in device_classes:
                fractions.setdefault(classes.allocation.index, []).append(classes.counts / classes.counts.sum())
        if not totals:
            raise BuddysimError(f"{trace.path}: no data values of device allocations: expected a trace with some")
        rows.append((name, WHOLE, len(totals), *map(float, np.mean(totals, axis=0))))
        for index, of_one in fractions.items():
            rows.append((name, trace.allocations[index].name, len(of_one), *map(float, np.mean(of_one, axis=0))))
    notes = (SIZES_NOTE.format(", ".join(options.compressors)), *([SAMPLED] if sampled else ()))
    return AnalysisResult("fraction of entries of each size class, mean over the snapshots", COLUMNS, rows, notes)
