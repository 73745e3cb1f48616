"""Entries that overflow their targets at each snapshot, with fixed targets (Buddy Compression, Fig. 8)."""

from __future__ import annotations

from buddysim.analyses.analysis_options import AnalysisOptions
from buddysim.analyses.analysis_result import AnalysisResult, Value
from buddysim.analyses.snapshot_classes import snapshots_of_run
from buddysim.analyses.target_choice import select_targets, target_source_text
from buddysim.buddy import profile_under
from buddysim.buddy.entry_values import EntryValues
from buddysim.trace import Trace

ORDER = 65
SUMMARY = "fraction of entries that overflow their final targets, at each snapshot (Fig. 8)"
COLUMNS = ("snapshot", "launches", "label", "entries", "overflow_fraction")
READS = ("compressors", "threshold", "profile_from")


def analyse(trace: Trace, options: AnalysisOptions) -> AnalysisResult:
    """A row for each snapshot: the entries with known sizes, and the fraction that overflows into buddy memory."""
    snapshots = snapshots_of_run(trace, EntryValues(trace, options.compressor))
    profile_options = options.profile()
    profile = profile_under(trace, select_targets(trace, profile_options, options), profile_options)
    rows: list[tuple[Value, ...]] = []
    for number, snapshot in enumerate(snapshots):
        entries, overflowing = profile.overflow_at(snapshot.index)
        overflow_fraction = overflowing / entries if entries else None
        rows.append((number, snapshot.launch_index, snapshot.label, entries, overflow_fraction))
    notes = (
        f"{target_source_text(options)}, threshold {options.threshold:g}, sizes by {options.compressor}; "
        f"compression ratio with these targets: {profile.ratio:.3f} at every snapshot",
    )
    return AnalysisResult("entries that overflow their targets", COLUMNS, rows, notes)
