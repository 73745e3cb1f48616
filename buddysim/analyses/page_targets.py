"""Targets by page, and by allocation: what finer targets reach, and what they cost (Buddy Compression, Sec. 3.2)."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from buddysim.analyses.analysis_options import AnalysisOptions
from buddysim.analyses.analysis_result import AnalysisResult, Value
from buddysim.analyses.snapshot_classes import SAMPLED, classes_at, snapshots_of_run
from buddysim.buddy import profile_with
from buddysim.buddy.entry_values import N_CLASSES, EntryValues
from buddysim.buddy.known import PAGE_ENTRIES
from buddysim.buddy.profiler import AllocationProfile
from buddysim.compress import ENTRY_BYTES
from buddysim.trace import Allocation, Snapshot, Trace

ORDER = 67
SUMMARY = "targets by page of 8 KB, compared with targets by allocation: ratio, overflow, page-table bits (Sec. 3.2)"
COLUMNS = ("allocation", "pages", "target", "overflow_fraction", "page_ratio", "page_overflow_fraction")
READS = ("compressors", "threshold")
#: Compressed or not, target ratio, offset of the page in buddy memory: in each page-table entry (section 3.2).
BITS_PER_PAGE = 24


def analyse(trace: Trace, options: AnalysisOptions) -> AnalysisResult:
    """A row for each allocation; a page's target holds the threshold in each of its snapshots."""
    values, profile_options = EntryValues(trace, options.compressor), options.profile(policy="per-allocation")
    snapshots = snapshots_of_run(trace, values)
    rows: list[tuple[Value, ...]] = []
    allocated = by_allocation = by_page = 0.0
    for row in profile_with(trace, profile_options).rows:
        observed = _pages(values, snapshots, trace.allocations[row.index])
        if not observed:
            continue
        pages = profile_with(trace, profile_options, observed).rows
        entries = sum(page.entries for page in pages)
        device = sum(page.entries * page.target.device_bytes_per_entry for page in pages) / entries
        over = float(sum(page.entries * page.overflow_fraction(page.target) for page in pages)) / entries
        allocated += row.entries * ENTRY_BYTES
        by_allocation += row.entries * row.target.device_bytes_per_entry
        by_page += row.entries * device
        own = float(row.overflow_fraction(row.target))
        rows.append((row.name, len(pages), row.target.name, own, ENTRY_BYTES / device, over))
    bits = BITS_PER_PAGE * sum(-(-allocation.entries // PAGE_ENTRIES) for allocation in trace.allocations)
    notes = (
        f"threshold {options.threshold:g}, sizes by {options.compressor}; targets up to 4x; {SAMPLED}",
        f"all of them: {allocated / by_allocation:.3f}x by allocation, {allocated / by_page:.3f}x by page"
        if by_page
        else "no allocation has pages of known sizes",
        f"{BITS_PER_PAGE} bits in each entry of the page table for pages of 8 KB: {bits // 8:,} B",
    )
    return AnalysisResult("targets by page and by allocation", COLUMNS, rows, notes)


def _pages(values: EntryValues, snapshots: list[Snapshot], allocation: Allocation) -> list[AllocationProfile]:
    """Return the sizes of each page's entries, as of an allocation; snapshots with an unknown entry are left out."""
    seen: defaultdict[int, dict[int, NDArray[np.int64]]] = defaultdict(dict)
    for snapshot in snapshots:
        if snapshot.index not in values.snapshots_of(allocation.index):
            continue
        for first, classes in classes_at(values, snapshot, allocation):
            for at in range(0, len(classes), PAGE_ENTRIES):
                page = classes[at : at + PAGE_ENTRIES]
                if (page < N_CLASSES).all():
                    seen[(first + at) // PAGE_ENTRIES][snapshot.index] = np.bincount(page, minlength=N_CLASSES)
    return [_page(allocation, number, counts) for number, counts in seen.items()]


def _page(allocation: Allocation, number: int, counts: dict[int, NDArray[np.int64]]) -> AllocationProfile:
    entries = int(next(iter(counts.values())).sum())
    stacked = np.array(list(counts.values()))
    return AllocationProfile(
        allocation.index, f"{allocation.name}, page {number}", entries * ENTRY_BYTES, entries, tuple(counts), stacked
    )
