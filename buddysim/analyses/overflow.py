"""Entries that overflow their targets at each snapshot, targets kept (Buddy Compression, Fig. 8)."""

from __future__ import annotations

from buddysim.analyses.analysis_options import AnalysisOptions
from buddysim.analyses.analysis_result import AnalysisResult, Value
from buddysim.analyses.snapshot_classes import snapshots_of_run
from buddysim.analyses.target_choice import chosen_on, chosen_targets
from buddysim.buddy import profile_under
from buddysim.buddy.values import EntryValues
from buddysim.trace import Trace

ORDER = 65
SUMMARY = "entries that overflow their final targets, at each snapshot (Fig. 8)"
COLUMNS = ("snapshot", "launches", "label", "entries", "overflow_fraction")
READS = ("compressors", "threshold", "profile_from")


def analyse(trace: Trace, options: AnalysisOptions) -> AnalysisResult:
    """A row for each snapshot: of the entries whose sizes it has, those that reach into buddy memory."""
    snapshots = snapshots_of_run(trace, EntryValues(trace, options.compressor))
    how = options.profile()
    seen = profile_under(trace, chosen_targets(trace, how, options), how)
    rows: list[tuple[Value, ...]] = []
    for number, snapshot in enumerate(snapshots):
        entries, over = seen.overflow_at(snapshot.index)
        share = over / entries if entries else None
        rows.append((number, snapshot.point, snapshot.label, entries, share))
    notes = (
        f"measured; {chosen_on(options)}, threshold {options.threshold:g}, sizes by {options.compressor}; the ratio "
        f"under these targets is {seen.ratio:.3f} throughout",
    )
    return AnalysisResult("entries that overflow their targets", COLUMNS, rows, notes)
