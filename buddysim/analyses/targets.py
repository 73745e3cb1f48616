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
    """A row for each policy: entries that overflow their target, and accesses to buddy memory of a replay."""
    snapshots_of_run(trace, EntryValues(trace, options.compressor))
    machine = options.loaded_machine
    rows: list[tuple[Value, ...]] = []
    for policy in POLICIES:
        how = options.profile(policy=policy)
        found = profile_under(trace, select_targets(trace, how, options), how)
        counted = simulate(
            trace, machine, "buddy", found.targets, compressor=options.compressor, partial=options.partial
        ).counters
        link = counted["link.read_bytes"] + counted["link.write_bytes"]
        rows.append(
            (
                policy,
                found.ratio,
                found.buddy_access_fraction,
                counted["buddy.accesses"],
                counted["buddy.access_fraction"],
                link,
            )
        )
    notes = (
        f"{target_source_text(options)}, threshold {options.threshold:g}, sizes by {options.compressor}",
        "static: share of entries that overflow their target, mean over the snapshots; replayed: share of fills and "
        f"write-backs of the L2 that touch buddy memory, modelled on {machine.name}",
    )
    return AnalysisResult("targets by policy", COLUMNS, rows, notes)
