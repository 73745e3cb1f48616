"""Traffic to buddy memory over the link, kernel by kernel (Buddy Compression, Fig. 8: over one iteration)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from buddysim.analyses.analysis_options import AnalysisOptions
from buddysim.analyses.analysis_result import AnalysisResult, Value
from buddysim.analyses.snapshot_classes import snapshots_of_run
from buddysim.analyses.target_choice import target_source_text
from buddysim.buddy.entry_values import EntryValues
from buddysim.compress import SECTOR_BYTES
from buddysim.replay import simulate
from buddysim.trace import Trace

ORDER = 70
SUMMARY = "traffic to buddy memory, kernel by kernel (Fig. 8)"
READS = ("compressors", "threshold", "profile_from", "machine")
MAX_SHOWN = 20
"""Most rows on a screen; with more kernels, each row is the sum of several."""

COLUMNS = ("launch", "name", "launch_ps", "time_ps", "device_bytes", "link_bytes", "link_fraction")


def analyse(trace: Trace, options: AnalysisOptions) -> AnalysisResult:
    """A row for each kernel of a replay under Buddy Compression with final targets."""
    snapshots_of_run(trace, EntryValues(trace, options.compressor))
    machine = options.loaded_machine
    result = simulate(
        trace,
        machine,
        "buddy",
        threshold=options.threshold,
        compressor=options.compressor,
        profile_from=options.profile_from,
        partial=options.partial,
    )
    rows: list[tuple[Value, ...]] = []
    for kernel in result.to_dict()["per_kernel"]:
        device = (kernel["device_read_sectors"] + kernel["device_write_sectors"]) * SECTOR_BYTES
        link = kernel["link_read_bytes"] + kernel["link_write_bytes"]
        link_fraction = link / (device + link) if device + link else None
        rows.append(
            (
                kernel["launch_index"],
                kernel["name"],
                kernel["launch_ps"],
                kernel["time_ps"],
                device,
                link,
                link_fraction,
            )
        )
    notes = (
        f"simulated on {machine.name}; {target_source_text(options)}, threshold {options.threshold:g}, sizes by "
        f"{options.compressor}",
        "traffic while overlapping kernels run counts for each of them; a write-back counts for the kernel that "
        "runs when the line is evicted",
    )
    shown = rows if len(rows) <= MAX_SHOWN else [_together(rows[part]) for part in _parts(len(rows))]
    return AnalysisResult("traffic to buddy memory by kernel", COLUMNS, rows, notes, AnalysisResult("", COLUMNS, shown))


def _parts(count: int) -> list[slice]:
    """Slices of `count` kernels: `MAX_SHOWN` of nearly the same length."""
    ends = [count * part // MAX_SHOWN for part in range(MAX_SHOWN + 1)]
    return [slice(*pair) for pair in pairwise(ends)]


def _together(rows: Sequence[tuple[Any, ...]]) -> tuple[Value, ...]:
    """One row for several consecutive kernels."""
    first, last = rows[0], rows[-1]
    device, link = (sum(row[column] for row in rows) for column in (4, 5))
    name = f"{len(rows)} kernels up to {last[0]}"
    link_fraction = link / (device + link) if device + link else None
    return (first[0], name, first[2], sum(row[3] for row in rows), device, link, link_fraction)
