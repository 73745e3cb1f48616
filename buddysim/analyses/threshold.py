"""Compression ratio and overflow by Buddy Threshold (Buddy Compression, Fig. 9)."""

from __future__ import annotations

from buddysim.analyses.analysis_options import AnalysisOptions
from buddysim.analyses.analysis_result import AnalysisResult, Value
from buddysim.analyses.snapshot_classes import snapshots_of_run
from buddysim.analyses.target_choice import select_targets, target_source_text
from buddysim.buddy import profile_under
from buddysim.buddy.entry_values import EntryValues
from buddysim.trace import Trace

ORDER = 80
SUMMARY = "compression ratio and overflow fraction by Buddy Threshold (Fig. 9)"
COLUMNS = ("threshold_fraction", "ratio", "overflow_fraction", "per_entry_ratio", "per_entry_sector_ratio")
READS = ("compressors", "thresholds", "profile_from")


def analyse(trace: Trace, options: AnalysisOptions) -> AnalysisResult:
    """A row for each threshold; with 1, unbounded, every allocation has 4x."""
    snapshots_of_run(trace, EntryValues(trace, options.compressor))
    rows: list[tuple[Value, ...]] = []
    for threshold in options.thresholds:
        profile_options = options.profile(threshold)
        profile = profile_under(trace, select_targets(trace, profile_options, options), profile_options)
        per_entry_ratios = (profile.per_entry_ratio, profile.per_entry_sector_ratio)
        known = (None if ratio == float("inf") else ratio for ratio in per_entry_ratios)
        rows.append((threshold, profile.ratio, profile.buddy_access_fraction, *known))
    notes = (
        f"{target_source_text(options)}; sizes by {options.compressor}; the threshold holds in the worst snapshot",
        "overflow_fraction: fraction of entries that overflow their target, mean over the snapshots",
        "per_entry_ratio: each entry takes its size class and no more; per_entry_sector_ratio: it takes whole sectors",
    )
    return AnalysisResult("Buddy Threshold", COLUMNS, rows, notes)
