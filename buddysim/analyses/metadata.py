"""Hit rate of the metadata cache by its size (Buddy Compression, Fig. 5b of the text version)."""

from __future__ import annotations

from buddysim.analyses.analysis_options import KIB, AnalysisOptions
from buddysim.analyses.analysis_result import AnalysisResult, Value
from buddysim.analyses.target_choice import target_source_text
from buddysim.base.errors import BuddysimError
from buddysim.replay import simulate
from buddysim.replay.schemes.buddy.keys import MetadataCacheConfig
from buddysim.trace import Trace

ORDER = 30
SUMMARY = "hit rate of the metadata cache by its size (Fig. 5b)"
READS = ("compressors", "threshold", "metadata_sizes", "metadata_lines", "profile_from", "machine")
COLUMNS = ("bytes_per_slice", "line_bytes", "total_bytes", "accesses", "hit_fraction", "mshr_merge_fraction", "time_ps")


def analyse(trace: Trace, options: AnalysisOptions) -> AnalysisResult:
    """A replay under Buddy Compression for each size and line of the cache."""
    machine = options.loaded_machine
    cache = machine.section_of(MetadataCacheConfig)
    slices, rows = cache.slices, list[tuple[Value, ...]]()
    for line in options.metadata_lines:
        for size in options.metadata_sizes:
            if size < line * cache.ways:
                raise BuddysimError(
                    f"metadata cache: {size} B per slice: too small: "
                    f"expected {line * cache.ways} B or more: "
                    f"{cache.ways} ways of lines of {line} B"
                )
            setting = {"metadata_cache.size": f"{size * slices} B", "metadata_cache.line": f"{line} B"}
            changed = machine.with_overrides(setting, "analyse")
            counted = simulate(
                trace,
                changed,
                "buddy",
                threshold=options.threshold,
                compressor=options.compressor,
                profile_from=options.profile_from,
                partial=options.partial,
            ).counters
            accesses = counted["metadata.accesses"]
            fractions = [
                counted[f"metadata.{kind}"] / accesses if accesses else None for kind in ("hits", "mshr_merges")
            ]
            rows.append((size, line, size * slices, accesses, *fractions, counted["time_ps"]))
    notes = (
        f"simulated on {machine.name}, {slices} slices, {cache.ways} ways; MSHR merges "
        "are accesses to a pending line and do not count as hits",
        f"{target_source_text(options)}, threshold {options.threshold:g}",
    )
    return AnalysisResult(
        f"metadata cache on {machine.name}, from {options.metadata_sizes[0] / KIB:g} KiB per slice",
        COLUMNS,
        rows,
        notes,
    )
