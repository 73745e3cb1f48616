"""What a reader must know before believing a replay: baseline, bands, why it is faster, which sizes are guessed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from buddysim.replay.schemes import BASELINE, DEFAULT
from buddysim.replay.sensitivity import AUTO, MAX_INSTRUCTIONS
from buddysim.report.bottleneck import BOTTLENECK_FROM, format_bottleneck, utilizations
from buddysim.report.quantities import format_bytes, format_percent

Flat = Mapping[str, Any]
Results = Mapping[str, Flat]

#: Below this a scheme counts as faster, and the notes say why.
_FASTER = 0.98
_CHANGED = {"latency": "latencies by 2.5 %", "compute-gaps": "compute gaps by 2.5 %", "seed": "the seed of drawn sizes"}
_PAPER = (
    "the paper's programs gain 2 % on average from Buddy Compression at 200 GB/s, and 5.5 % where only traffic is "
    "compressed (its Fig. 11): few of them are bound by device memory"
)


def notes(results: Results) -> list[str]:
    """A paragraph for each, where there is anything to say."""
    return [
        *_baseline(results),
        *_capacity(results),
        *_why_faster(results),
        *_bands(results),
        *_drawn(results),
        *_extrapolated(results),
    ]


def _baseline(results: Results) -> Iterator[str]:
    if BASELINE not in results:
        return
    about = next(iter(results.values()))["provenance"]["baseline"]
    changed = ", ".join(f"{key} = {value}" for key, value in about["settings"].items()) if about else ""
    yield f"baseline: {BASELINE}: uncompressed, unlimited memory" + (
        f"; it alone runs with {changed}" if changed else ""
    )


def _capacity(results: Results) -> Iterator[str]:
    first = next(iter(results.values()))
    room = first["provenance"]["equal_capacity_bytes"]
    if room is not None:
        yield (
            f"equal capacity: schemes with pages in device memory get {format_bytes(room)} of it, what {DEFAULT}'s "
            f"targets and metadata take; a scheme that keeps everything in host memory uses none"
        )


def _why_faster(results: Results) -> Iterator[str]:
    """Why a scheme beats memory that is unlimited: nobody should take that for a fault."""
    baseline = results.get(BASELINE)
    if baseline is None:
        return
    name, share = utilizations(baseline)[0]
    moved = {scheme: result["device.bus_bytes"] for scheme, result in results.items()}
    faster = [
        scheme
        for scheme, result in results.items()
        if (result["slowdown.ratio"] or 1) < _FASTER and moved[scheme] < moved[BASELINE]
    ]
    if not faster or share < BOTTLENECK_FROM or not name.startswith("dram"):
        return
    less = ", ".join(f"{scheme} {format_bytes(moved[scheme])}" for scheme in faster)
    yield (
        f"why {' and '.join(faster)} can be faster: {BASELINE} is bound by "
        f"{', '.join(format_bottleneck(baseline))} of its limit, and moves "
        f"{format_bytes(moved[BASELINE])} there; {less}. Another program may gain nothing: {_PAPER}"
    )


def _bands(results: Results) -> Iterator[str]:
    first = next(iter(results.values()))
    about, runs = first["provenance"]["sensitivity"], len(first["sensitivity.time_ps"])
    instructions = first["memory_instructions"]
    if about["requested"] == AUTO and instructions > MAX_INSTRUCTIONS:
        yield (
            f"no bands: {instructions:,} memory instructions a run, more than {MAX_INSTRUCTIONS:,}: "
            "ask with --sensitivity all"
        )
    if not runs:
        return
    seeds = len({run["seed"] for run in about["runs"]}) > 1
    changed = [text for kind, text in _CHANGED.items() if kind in about["kinds"] and (kind != "seed" or seeds)]
    yield f"bands: {runs} more runs of each scheme, changed alike: {', '.join(changed)}"
    for scheme, result in results.items():
        low, high = result["slowdown.min"], result["slowdown.max"]
        if scheme != BASELINE and low is not None and low <= 1 <= high:
            yield f"the band of {scheme} contains 1: this trace doesn't tell it from {BASELINE}"


def _drawn(results: Results) -> Iterator[str]:
    """Which schemes saw sizes that nobody measured."""
    fractions = {scheme: result["sizes.synthetic_fraction"] for scheme, result in results.items()}
    drawn = {scheme: fraction for scheme, fraction in fractions.items() if fraction}
    if not drawn:
        return
    run = results[next(iter(drawn))]["provenance"]
    seeds = next((seeds for result in results.values() if (seeds := result["compression.synthetic_seeds"])), 0)
    spread = f"; the ratio is shown as it spreads over {seeds} seeds" if seeds else ""
    yield (
        f"sizes drawn from a distribution ({run['size_distribution']}), not measured "
        f"({', '.join(drawn)}): the trace has no "
        f"values of {format_percent(max(drawn.values()))} of the entries{spread}; --require-data-values refuses it"
    )


def _extrapolated(results: Results) -> Iterator[str]:
    """Which schemes took sizes of entries from neighbours, and how many."""
    schemes_of: dict[tuple[float, float], list[str]] = {}
    for scheme, result in results.items():
        shares = (result["sizes.extrapolated_fraction"], result["sizes.extrapolated_mean_fraction"])
        if any(shares):
            schemes_of.setdefault(shares, []).append(scheme)
    for (start, mean), schemes in schemes_of.items():
        yield (
            f"sizes taken from sampled neighbours ({', '.join(schemes)}): {format_percent(start)} of the entries at "
            f"the start, {format_percent(mean)} over the snapshots used"
        )


def assumptions(results: Results) -> list[str]:
    """What was assumed, a paragraph each, with the schemes where it isn't of all."""
    schemes_of: dict[tuple[str, str], list[str]] = {}
    for scheme, result in results.items():
        for assumption in result["provenance"]["assumptions"].items():
            schemes_of.setdefault(assumption, []).append(scheme)
    lines = []
    for (subject, text), schemes in schemes_of.items():
        only = "" if len(schemes) == len(results) else f" ({', '.join(schemes)})"
        lines.append(f"assumed: {subject}{only}: {text}")
    return lines
