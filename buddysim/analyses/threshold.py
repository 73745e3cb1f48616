"""Buddy Threshold: ratio against buddy accesses (Buddy Compression, Fig. 9)."""

from __future__ import annotations

from buddysim.analyses.finding import Finding, Value
from buddysim.analyses.options import Options
from buddysim.analyses.over_run import snapshots_of_run
from buddysim.buddy import profile_with
from buddysim.buddy.values import EntryValues
from buddysim.trace import Trace

ORDER = 80
SUMMARY = "ratio and buddy accesses against the Buddy Threshold (Fig. 9)"
COLUMNS = ("threshold_share", "ratio", "static_share", "free_placement_ratio")


def analyse(trace: Trace, options: Options) -> Finding:
    """A row for each threshold; 1 is no bound, the best achievable."""
    snapshots_of_run(trace, EntryValues(trace, options.compressor))
    rows: list[tuple[Value, ...]] = []
    for threshold in options.thresholds:
        found = profile_with(trace, options.profile(threshold))
        free = found.free_placement_ratio
        rows.append((threshold, found.ratio, found.buddy_access_share, None if free == float("inf") else free))
    notes = (
        f"sizes by {options.compressor}; the threshold holds in the worst snapshot; static share: entries that "
        "overflow their target, mean over the snapshots; free placement: every entry takes its size class and no more",
    )
    return Finding("Buddy Threshold", COLUMNS, rows, notes)
