"""Compressibility of the workloads, compared with the paper: ratios over the run, compressors, size classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from buddysim.papers.buddy.buddy_study import BuddyStudy, paper_names
from buddysim.papers.buddy.digitized_figures import COMPRESSORS, figure_numbers
from buddysim.papers.buddy.means import arithmetic, geometric, lacking_text, values_by_workload
from buddysim.papers.buddy.why_not_reproduced import WHY, error_contributions, per_entry_ratios
from buddysim.papers.simulated_values import SimulatedValue, simulates

SNAPSHOTS = 10


def ratios_over_run(study: BuddyStudy, name: str) -> list[float | None] | None:
    """The ratio at each snapshot of a workload; None: not stored."""
    rows = study.analysis_rows(name, "ratio")
    return None if rows is None else [row["ratio"] for row in rows]


def mean_ratio(study: BuddyStudy, name: str, compressor: str = "bpc") -> float | None:
    """The geometric mean of a workload's ratios over its run."""
    rows = study.analysis_rows(name, "ratio", compressors=compressor)
    return None if rows is None else geometric(row["ratio"] for row in rows)


def class_fractions(study: BuddyStudy, name: str) -> dict[int, float] | None:
    """Return the fraction of a workload's entries of each size class."""
    rows = study.analysis_rows(name, "classes")
    if rows is None:
        return None
    whole = rows[0]
    return {
        int(key.removeprefix("fraction_").removesuffix("B")): fraction
        for key, fraction in whole.items()
        if key.startswith("fraction_")
    }


def class_fraction_of_group(study: BuddyStudy, group: str, size: int) -> float | None:
    """Return the mean fraction of entries of a size class over the workloads of a group."""

    def class_fraction(name: str) -> float | None:
        fractions = class_fractions(study, name)
        return None if fractions is None else fractions[size]

    return arithmetic(values_by_workload(study, group, class_fraction).values())


@simulates(*(number.id for number in figure_numbers() if number.id.startswith("fig3/")))
def snapshot(study: BuddyStudy, id: str) -> SimulatedValue:
    _, workload, number = id.split("/")
    name = {paper: workload_name for workload_name, paper in paper_names().items()}[workload]
    if name not in study.names():
        return SimulatedValue(None, note="left out")
    ratios = ratios_over_run(study, name)
    if ratios is None:
        return SimulatedValue(None, note="not stored")
    if len(ratios) != SNAPSHOTS:
        return SimulatedValue(None, note=f"{len(ratios)} snapshots")
    return SimulatedValue(ratios[int(number) - 1], cause=program_cause(name))


def program_cause(name: str) -> str:
    """Why a workload's memory holds something else than the paper's."""
    from buddysim.workloads.workload_registry import REGISTRY

    return str(REGISTRY.find(name).WHY).rstrip(".")


@simulates("buddy-fig3-hpc", "buddy-fig3-dl")
def fig3_means(study: BuddyStudy, id: str) -> SimulatedValue:
    group = id.rpartition("-")[2].upper()
    return simulate_group(study, group, lambda name: mean_ratio(study, name), "{:.2f}", per_entry_ratios())


def simulate_group(
    study: BuddyStudy,
    group: str,
    value: Callable[[str], float | None],
    form: str,
    reported: Mapping[str, float] | None = None,
    arithmetically: bool = False,
) -> SimulatedValue:
    """Return the mean of a group; notes: each workload's value and, with reported values, error contributions."""
    by_workload = values_by_workload(study, group, value)
    mean = arithmetic(by_workload.values()) if arithmetically else geometric(by_workload.values())
    each = ", ".join(f"{name} {form.format(one)}" for name, one in by_workload.items() if one is not None)
    note = "; ".join(text for text in (each, lacking_text(by_workload)) if text)
    parts = error_contributions(by_workload, reported, arithmetically) if reported is not None else ""
    return SimulatedValue(mean, note=note, cause=f"{parts}; {WHY}" if parts else CONTENTS_CAUSE)


CONTENTS_CAUSE = (
    "other data values than the paper's: independent programs of the same algorithms, small networks trained on small "
    "images (docs/explanation/workloads.md)"
)


@simulates(*(number.id for number in figure_numbers() if number.id.startswith("fig5a/")))
def compressor_means(study: BuddyStudy, id: str) -> SimulatedValue:
    _, algorithm, group = id.split("/")
    if algorithm not in COMPRESSORS:
        return SimulatedValue(None)
    return simulate_group(study, group, lambda name: mean_ratio(study, name, COMPRESSORS[algorithm]), "{:.2f}")


@simulates(*(number.id for number in figure_numbers() if number.id.startswith("fig5b/")))
def class_percents(study: BuddyStudy, id: str) -> SimulatedValue:
    _, group, size = id.split("/")
    fraction = class_fraction_of_group(study, group, int(size))
    return SimulatedValue(None if fraction is None else 100 * fraction, cause=CONTENTS_CAUSE)


@simulates("buddy-seismic-decay")
def seismic_decay(study: BuddyStudy) -> SimulatedValue:
    ratios = ratios_over_run(study, "seismic")
    if ratios is None or ratios[0] is None or ratios[-1] is None:
        return SimulatedValue(None, note="not stored")
    falls = ratios[0] > 4 and abs(ratios[-1] / 2 - 1) <= 0.1
    text = " ".join("-" if ratio is None else f"{ratio:.2f}" for ratio in ratios)
    return SimulatedValue("falls to 2x" if falls else f"{ratios[0]:.1f} to {ratios[-1]:.1f}", note=text)


@simulates("buddy-dl-constant")
def dl_constant(study: BuddyStudy) -> SimulatedValue:
    spreads = {}
    for name in study.names("DL"):
        ratios = ratios_over_run(study, name)
        known = [ratio for ratio in ratios or () if ratio is not None]
        if known:
            spreads[name] = max(known) / min(known) - 1
    if len(spreads) < len(study.names("DL")) or not spreads:
        return SimulatedValue(None, note=f"{len(spreads)} of {len(study.names('DL'))} stored")
    ranked = sorted(spreads.values())
    note = ", ".join(f"{name} {100 * spread:.0f} %" for name, spread in spreads.items())
    return SimulatedValue("roughly constant" if ranked[len(ranked) // 2] <= 0.1 else "changes", note=note)


@simulates("buddy-dl-changes")
def dl_changes(study: BuddyStudy) -> SimulatedValue:
    by_workload = {}
    for name in study.names("DL"):
        rows = study.analysis_rows(name, "changes")
        fraction = arithmetic(row["class_change_fraction"] for row in rows) if rows else None
        if fraction is not None:
            by_workload[name] = fraction
    if len(by_workload) < len(study.names("DL")) or not by_workload:
        return SimulatedValue(None, note=f"{len(by_workload)} of {len(study.names('DL'))} stored")
    mean = sum(by_workload.values()) / len(by_workload)
    note = ", ".join(f"{name} {100 * fraction:.0f} %" for name, fraction in by_workload.items())
    return SimulatedValue("frequent" if mean > 0.1 else "rare", note=note)
