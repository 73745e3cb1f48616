"""Naive, per-allocation and final targets: ratio and buddy accesses (Buddy Compression, Fig. 7)."""

from __future__ import annotations

from buddysim.analyses.analysis_options import AnalysisOptions
from buddysim.analyses.analysis_result import AnalysisResult, Value
from buddysim.analyses.snapshot_classes import snapshots_of_run
from buddysim.analyses.target_choice import select_targets, target_source_text
from buddysim.buddy import profile_under
from buddysim.buddy.entry_values import EntryValues
from buddysim.buddy.profile_options import POLICIES
from buddysim.replay import simulate
from buddysim.trace import Trace

ORDER = 60
SUMMARY = "naive, per-allocation and final targets: ratio and buddy accesses (Fig. 7)"
COLUMNS = ("policy", "ratio", "overflow_fraction", "buddy_accesses", "buddy_access_fraction", "link_bytes")
READS = ("compressors", "threshold", "profile_from", "machine")


def analyse(trace: Trace, options: AnalysisOptions) -> AnalysisResult:
    """A row for each policy: entries that overflow their target, and buddy accesses of a replay."""
    snapshots_of_run(trace, EntryValues(trace, options.compressor))
    machine = options.loaded_machine
    rows: list[tuple[Value, ...]] = []
    for policy in POLICIES:
        profile_options = options.profile(policy=policy)
        profile = profile_under(trace, select_targets(trace, profile_options, options), profile_options)
        counters = simulate(
            trace, machine, "buddy", profile.targets, compressor=options.compressor, partial=options.partial
        ).counters
        link_bytes = counters["link.read_bytes"] + counters["link.write_bytes"]
        rows.append(
            (
                policy,
                profile.ratio,
                profile.buddy_access_fraction,
                counters["buddy.accesses"],
                counters["buddy.access_fraction"],
                link_bytes,
            )
        )
    notes = (
        f"{target_source_text(options)}, threshold {options.threshold:g}, sizes by {options.compressor}",
        "overflow_fraction: fraction of entries that overflow their target, mean over the snapshots; "
        "buddy_access_fraction: fraction of L2 fills and write-backs that access buddy memory, "
        f"simulated on {machine.name}",
    )
    return AnalysisResult("targets by policy", COLUMNS, rows, notes)
