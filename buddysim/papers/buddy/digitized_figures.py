"""Numbers read off the figures of the ISCA 2020 version: one for each bar, or for each point of Fig. 3."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any

from buddysim.base.textfile import parse_json
from buddysim.papers.reported_values import ReportedValue

#: Fig. 3 shows no ratio above this.
AXIS = 7.0
#: Keys of Fig. 7, and what they are.
POLICIES = {"naive": "one target for the program", "per_alloc": "targets per allocation", "final": "final design"}
#: Keys of Fig. 9 and their thresholds; 1 is the best achievable.
THRESHOLDS = {
    "threshold_10": 0.1,
    "threshold_20": 0.2,
    "threshold_30": 0.3,
    "threshold_40": 0.4,
    "best_achievable": 1.0,
}
MEANS = {"GMEAN_HPC": "HPC, mean", "GMEAN_DL": "DL, mean"}
#: Bars of the compressors' figure, and buddysim's compressors; the others aren't implemented.
COMPRESSORS = {"BPC": "bpc", "BDI+FPC": "bdi+fpc", "ZeroEncoding": "zvc"}
_PROGRAMS, _NETWORKS = ("programs",), ("networks",)
_FIRST_NETWORK = "BigLSTM"


@cache
def figures() -> Mapping[str, Any]:
    """Values read off the figures, by figure."""
    text = (resources.files(__package__ or "") / "figures.json").read_text(encoding="utf-8")
    digitized: dict[str, Any] = parse_json(text, "figures.json")
    return digitized


@cache
def workloads() -> dict[str, str]:
    """The group of each workload, ``HPC`` or ``DL``, in the figures' order."""
    names = list(figures()["fig3_ratio_over_time_10_snapshots"])
    first = names.index(_FIRST_NETWORK)
    return {name: "HPC" if at < first else "DL" for at, name in enumerate(names)}


def figure_numbers() -> Iterator[ReportedValue]:
    """The numbers, figure by figure."""
    for workload, ratios in figures()["fig3_ratio_over_time_10_snapshots"].items():
        for number, ratio in enumerate(ratios, 1):
            yield ReportedValue(
                f"fig3/{workload}/{number}", _where(3), AXIS if ratio is None else ratio,
                f"{workload}: ratio at snapshot {number} of 10", "tenth" if ratio is not None else "at-least", "x",
                note="above its axis" if ratio is None else "", needs=_needs(workload),
            )  # fmt: skip
    for algorithm, ratios in figures()["fig5a_ratio_by_algorithm"].items():
        for group, ratio in ratios.items() if isinstance(ratios, dict) else ():
            is_implemented = algorithm in COMPRESSORS
            yield ReportedValue(
                f"fig5a/{algorithm}/{group}", _where("5a"), ratio, f"{group}: mean ratio by {algorithm}",
                "tenth" if is_implemented else "none", "x", note="" if is_implemented else "not implemented",
                needs=_needs(group),
            )  # fmt: skip
    fractions = figures()["fig5b_fraction_of_entries_per_size"]
    for group in ("HPC", "DL"):
        for size, fraction in zip(fractions["sizes"], fractions[group], strict=True):
            yield ReportedValue(
                f"fig5b/{group}/{size}", _where("5b"), 100 * fraction, f"{group}: entries of {size} B", "three-points",
                "%", needs=_needs(group),
            )  # fmt: skip
    yield from _of_targets()


def _of_targets() -> Iterator[ReportedValue]:
    for workload, bars in figures()["fig7_ratio_and_buddy_accesses"].items():
        name = MEANS.get(workload, workload)
        for policy, text in POLICIES.items():
            yield ReportedValue(
                f"fig7/{workload}/{policy}_target", _where(7), bars[f"{policy}_target"], f"{name}: ratio, {text}",
                "tenth", "x", needs=_needs(workload),
            )  # fmt: skip
            yield ReportedValue(
                f"fig7/{workload}/{policy}_buddy_frac", _where(7), round(100 * bars[f"{policy}_buddy_frac"], 6),
                f"{name}: buddy accesses, {text}", "three-points", "%", needs=_needs(workload),
            )  # fmt: skip
    for workload, bars in figures()["fig9_ratio_by_buddy_threshold"].items():
        name = MEANS.get(workload, workload)
        for key, threshold in THRESHOLDS.items():
            text = "best achievable ratio" if threshold == 1 else f"ratio with a threshold of {threshold:.0%}"
            yield ReportedValue(
                f"fig9/{workload}/{key}", _where(9), bars[key], f"{name}: {text}", "tenth", "x", needs=_needs(workload)
            )


def _where(figure: int | str) -> str:
    return f"Buddy, ISCA version, Fig. {figure}"


def _needs(name: str) -> tuple[str, ...]:
    group = workloads().get(name) or name.removeprefix("GMEAN_")
    return _PROGRAMS if group == "HPC" else _NETWORKS
