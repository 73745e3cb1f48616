"""What a reader must know before believing a result: what bands and the baseline are, and which sizes are guessed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group
from rich.text import Text

from buddysim.replay.schemes import BASELINE
from buddysim.replay.sensitivity import AUTO, MOST_INSTRUCTIONS
from buddysim.report.quantities import share_text

Flat = Mapping[str, Any]
Results = Mapping[str, Flat]

_CHANGED = {"latency": "latencies by 2.5 %", "gaps": "gaps by 2.5 %", "seed": "the seed of drawn sizes"}


def notes(results: Results) -> Group:
    """A line for each, where there is anything to say."""
    lines = [*_baseline(results), *_bands(results), *_extrapolated(results)]
    return Group(*(Text(line) for line in lines))


def ratio_text(ratio: float, low: float | None, high: float | None, digits: int = 3) -> str:
    """A ratio with its band: ``0.987 (0.981 to 1.002)``."""
    band = "" if low is None or high is None else f" ({low:.{digits}f} to {high:.{digits}f})"
    return f"{ratio:.{digits}f}{band}"


def _baseline(results: Results) -> list[str]:
    about = next(iter(results.values()))["provenance"]["baseline"]
    if not about or not about["settings"]:
        return []
    settings = ", ".join(f"{key} = {value}" for key, value in about["settings"].items())
    return [f"baseline: {about['scheme']} alone runs with {settings}"]


def _bands(results: Results) -> list[str]:
    first = next(iter(results.values()))
    about, runs = first["provenance"]["sensitivity"], len(first["sensitivity.time_ps"])
    instructions = first["memory_instructions"]
    if about["asked"] == AUTO and instructions > MOST_INSTRUCTIONS:
        return [
            f"no bands: {instructions:,} memory instructions a run, more than {MOST_INSTRUCTIONS:,}: "
            "ask with --sensitivity all"
        ]
    if not runs:
        return []
    seeds = len({run["seed"] for run in about["runs"]}) > 1
    changed = [text for kind, text in _CHANGED.items() if kind in about["kinds"] and (kind != "seed" or seeds)]
    lines = [f"bands: {runs} more runs of each scheme, changed alike: {', '.join(changed)}"]
    for scheme, result in results.items():
        low, high = result["slowdown.low"], result["slowdown.high"]
        if scheme != BASELINE and low is not None and low <= 1 <= high:
            lines.append(f"the band of {scheme} contains 1: this trace doesn't tell it from {BASELINE}")
    return lines


def _extrapolated(results: Results) -> list[str]:
    """Which schemes took sizes of entries from neighbours, and how many."""
    schemes_of: dict[tuple[float, float], list[str]] = {}
    for scheme, result in results.items():
        shares = (result["sizes.extrapolated_share"], result["sizes.extrapolated_mean_share"])
        if any(shares):
            schemes_of.setdefault(shares, []).append(scheme)
    return [
        f"sizes taken from sampled neighbours ({', '.join(schemes)}): {share_text(start)} of the entries at the start, "
        f"{share_text(mean)} over the snapshots used"
        for (start, mean), schemes in schemes_of.items()
    ]
