"""Caveats of a replay: what a reader must know before believing it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from buddysim.replay.result import has_derived_accesses
from buddysim.replay.schemes import BASELINE, DEFAULT
from buddysim.replay.sensitivity import AUTO, MAX_INSTRUCTIONS, NO_DIFFERENCE, tells_no_difference
from buddysim.report.bottleneck import BOTTLENECK_FROM, utilizations
from buddysim.report.caveats import assumption_lines, caveat_section
from buddysim.report.quantities import format_bytes, format_percent, format_scaled, format_significant
from buddysim.report.screen import Part

Flat = Mapping[str, Any]
Results = Mapping[str, Flat]

#: Below this slowdown a scheme counts as faster than the baseline.
_FASTER = 0.98
_OPTIMISTIC_SCHEMES = ("pinned-host", "unified-memory")


def caveat_parts(results: Results) -> list[Part]:
    """Return the section of caveats of `run`: those that matter most, then the number of assumptions."""
    texts: list[str] = []
    for caveats in _CAVEATS:
        texts += caveats(results)
    return caveat_section(texts, len(assumption_lines(results)))


def synthetic_sizes(results: Results) -> Iterator[str]:
    """The line that says that sizes are synthetic, and of how many entries."""
    fractions = [result["sizes.synthetic_fraction"] for result in results.values()]
    seeds = max(result["compression.synthetic_seeds"] or 0 for result in results.values())
    if not any(fractions):
        return
    if max(fractions) >= 1:
        yield f"SYNTHETIC SIZES: the trace has no data values; ratios are ranges over {seeds} seeds"
    else:
        synthetic = format_percent(max(fractions))
        yield f"SYNTHETIC SIZES: of {synthetic} of the entries; ratios are ranges over {seeds} seeds"


def partial_trace(results: Results) -> Iterator[str]:
    """The line that says that the end of the trace file is missing, and what was replayed."""
    text = next(iter(results.values()))["provenance"].get("partial_contents")
    if text is not None:
        yield f"PARTIAL TRACE: {text}"


def derived_accesses(results: Results) -> Iterator[str]:
    """The line that says that the accesses are not the program's."""
    if has_derived_accesses(next(iter(results.values()))):
        yield "DERIVED ACCESSES: compare compression, not times, which are in --json alone"


def _pushed(results: Results) -> Iterator[str]:
    """Requests that the simulator granted and did not record."""
    pushed = max(result.get("horizon.pushed", 0) for result in results.values())
    if pushed:
        yield f"{format_scaled(pushed)} requests are too far ahead to be recorded: later ones do not wait for them."


def _ideal_is_dram_bound(results: Results) -> Iterator[str]:
    """Why a scheme is faster than unlimited memory, so that nobody takes it for an error."""
    baseline = results.get(BASELINE)
    if baseline is None or has_derived_accesses(baseline):
        return
    name, fraction = utilizations(baseline)[0]
    faster = [
        scheme
        for scheme, result in results.items()
        if (result["slowdown.ratio"] or 1) < _FASTER and result["device.bus_bytes"] < baseline["device.bus_bytes"]
    ]
    if faster and fraction >= BOTTLENECK_FROM and name.startswith("dram"):
        verb = "beats" if len(faster) == 1 else "beat"
        yield (f"{', '.join(faster)} {verb} {BASELINE} because {BASELINE} is DRAM-bound; the paper's mean gain is 2 %.")


def _indistinguishable(results: Results) -> Iterator[str]:
    """Schemes whose sensitivity range contains the baseline."""
    schemes = [
        scheme
        for scheme, result in results.items()
        if scheme != BASELINE and tells_no_difference(result) and not has_derived_accesses(result)
    ]
    if schemes:
        yield f"{', '.join(schemes)}: {NO_DIFFERENCE}: the range contains 1."


def _optimistic_schemes(results: Results) -> Iterator[str]:
    """The direction in which pinned host memory and Unified Memory are wrong next to the default scheme."""
    optimistic = [scheme for scheme in results if scheme in _OPTIMISTIC_SCHEMES]
    if optimistic and DEFAULT in results:
        verb = "is" if len(optimistic) == 1 else "are"
        yield (
            f"{' and '.join(optimistic)} {verb} optimistic against {DEFAULT}: TLB misses and page walks are not "
            "modelled."
        )


def _equal_capacity(results: Results) -> Iterator[str]:
    capacity = next(iter(results.values()))["provenance"]["equal_capacity_bytes"]
    if capacity is not None:
        yield f"Equal capacity: page migration gets {format_bytes(capacity)}, the device memory of {DEFAULT}."


def _changed_baseline(results: Results) -> Iterator[str]:
    about = next(iter(results.values()))["provenance"]["baseline"]
    if about and about["settings"]:
        changed = ", ".join(f"{key} = {value}" for key, value in about["settings"].items())
        yield f"{BASELINE} alone runs with {changed}."


def _targets(results: Results) -> Iterator[str]:
    """Targets that were chosen with knowledge of the replayed trace."""
    for result in results.values():
        run = result["provenance"]
        source = run["targets_source"]
        if source.get("kind") != "profile" or source["trace_checksum"] != run["trace_checksum"]:
            continue
        points = source["snapshot_points"]
        if not points:
            return  # the heading says that the sizes are synthetic
        first = min((kernel["launch_index"] for kernel in result["per_kernel"]), default=0)
        later = sum(point > first for point in points)
        count = f" ({later} of {len(points)} snapshots come later)" if later else ""
        yield f"Targets are profiled on this trace{count}: optimistic."
        return


def _compute_gaps(results: Results) -> Iterator[str]:
    """How the trace knows what warps do between memory instructions."""
    first = next(iter(results.values()))
    assumptions = first["provenance"]["assumptions"]
    text = assumptions.get("trace.compute_gaps") or assumptions.get("trace.gaps") or ""
    if "LLVM" in text:
        yield "Compute gaps are LLVM instructions counted on a CPU, not SASS."
    elif any(result["sensitivity.half_compute_gaps_time_ps"] for result in results.values()):
        yield "Compute gaps are estimated: the trace does not record how long instructions take."


def _extrapolated(results: Results) -> Iterator[str]:
    fraction = max(result["sizes.extrapolated_mean_fraction"] for result in results.values())
    if fraction:
        yield f"Sizes of {format_percent(fraction)} of the entries are those of the nearest sampled page."


def _no_sensitivity(results: Results) -> Iterator[str]:
    first = next(iter(results.values()))
    instructions = first["memory_instructions"]
    if first["provenance"]["sensitivity"]["requested"] == AUTO and instructions > MAX_INSTRUCTIONS:
        yield (
            f"No sensitivity range: {format_scaled(instructions)} memory instructions are more than "
            f"{format_significant(MAX_INSTRUCTIONS / 1e6)} M; --sensitivity all."
        )


#: Caveats of a replay, the most important first.
_CAVEATS: tuple[Callable[[Results], Iterator[str]], ...] = (
    _pushed,
    _changed_baseline,
    _equal_capacity,
    _ideal_is_dram_bound,
    _optimistic_schemes,
    _indistinguishable,
    _targets,
    _compute_gaps,
    _extrapolated,
    _no_sensitivity,
)
