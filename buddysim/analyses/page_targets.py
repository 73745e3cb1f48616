"""Targets by page, and by allocation: what finer targets reach, and what they cost (Buddy Compression, Sec. 3.2)."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from buddysim.analyses.analysis_options import AnalysisOptions
from buddysim.analyses.analysis_result import AnalysisResult, Value
from buddysim.analyses.snapshot_classes import SAMPLED, classes_at, snapshots_of_run
from buddysim.buddy import profile_with
from buddysim.buddy.entry_values import EntryValues
from buddysim.buddy.known import PAGE_ENTRIES
from buddysim.buddy.profile_options import exact_fraction
from buddysim.buddy.targets import ALL_TARGETS, Target
from buddysim.compress import ENTRY_BYTES, SECTORS_OF_CLASS, STUDY_CLASSES
from buddysim.trace import Allocation, Snapshot, Trace

ORDER = 67
SUMMARY = "targets by page of 8 KB, compared with targets by allocation: ratio, overflow, page-table bits (Sec. 3.2)"
COLUMNS = ("allocation", "pages", "target", "overflow_fraction", "page_ratio", "page_overflow_fraction")
READS = ("compressors", "threshold")
#: Compressed or not, target ratio, offset of the page in buddy memory: in each page-table entry (section 3.2).
BITS_PER_PAGE = 24
_SECTORS = np.array([*SECTORS_OF_CLASS])


def analyse(trace: Trace, options: AnalysisOptions) -> AnalysisResult:
    """A row for each allocation; a page's target holds the threshold in each of its snapshots."""
    values, profile_options = EntryValues(trace, options.compressor), options.profile(policy="per-allocation")
    snapshots = snapshots_of_run(trace, values)
    limit = exact_fraction("threshold", options.threshold)
    rows: list[tuple[Value, ...]] = []
    allocated = by_allocation = by_page = 0.0
    for row in profile_with(trace, profile_options).rows:
        pages = _pages(values, snapshots, trace.allocations[row.index])
        if not pages:
            continue
        targets = [_target(list(seen.values()), limit) for seen in pages.values()]
        entries = sum(len(next(iter(seen.values()))) for seen in pages.values())
        sizes = [len(next(iter(seen.values()))) for seen in pages.values()]
        device = (
            sum(size * target.device_bytes_per_entry for size, target in zip(sizes, targets, strict=True)) / entries
        )
        over = [
            sum(_over(classes, target) for classes in seen.values()) / len(seen)
            for seen, target in zip(pages.values(), targets, strict=True)
        ]
        allocated += row.entries * ENTRY_BYTES
        by_allocation += row.entries * row.target.device_bytes_per_entry
        by_page += row.entries * device
        own = float(row.overflow_fraction(row.target))
        rows.append((row.name, len(pages), row.target.name, own, ENTRY_BYTES / device, sum(over) / entries))
    bits = BITS_PER_PAGE * sum(
        -(-trace.allocations[at].entries // PAGE_ENTRIES) for at in range(len(trace.allocations))
    )
    notes = (
        f"threshold {options.threshold:g}, sizes by {options.compressor}; targets up to 4x; {SAMPLED}",
        f"all of them: {allocated / by_allocation:.3f}x by allocation, {allocated / by_page:.3f}x by page"
        if by_page
        else "no allocation has pages of known sizes",
        f"{BITS_PER_PAGE} bits in each entry of the page table for pages of 8 KB: {bits // 8:,} B",
    )
    return AnalysisResult("targets by page and by allocation", COLUMNS, rows, notes)


def _pages(
    values: EntryValues, snapshots: list[Snapshot], allocation: Allocation
) -> dict[int, dict[int, NDArray[np.uint8]]]:
    """Return the classes of each page's entries by snapshot; pages with an unknown entry are left out."""
    pages: defaultdict[int, dict[int, NDArray[np.uint8]]] = defaultdict(dict)
    if allocation.space != "device":
        return pages
    for snapshot in snapshots:
        if snapshot.index not in values.snapshots_of(allocation.index):
            continue
        for first, classes in classes_at(values, snapshot, allocation):
            for at in range(0, len(classes), PAGE_ENTRIES):
                page = classes[at : at + PAGE_ENTRIES]
                if (page < len(STUDY_CLASSES)).all():
                    pages[(first + at) // PAGE_ENTRIES][snapshot.index] = page
    return pages


def _over(classes: NDArray[np.uint8], target: Target) -> int:
    """Return the number of entries that overflow a target."""
    return int((_SECTORS[classes] > target.device_sectors).sum())


def _target(seen: list[NDArray[np.uint8]], limit: Fraction) -> Target:
    """Return the largest target up to 4x that no snapshot of a page overflows by more than the threshold."""
    fits = [
        target
        for target in ALL_TARGETS[:4]
        if all(Fraction(_over(classes, target), len(classes)) <= limit for classes in seen)
    ]
    return fits[-1]
