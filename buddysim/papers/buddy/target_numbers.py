"""Targets of the workloads, compared with the paper: policies, thresholds, overflow (Figs. 6 to 9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from buddysim.buddy import ProfileOptions
from buddysim.papers.buddy.buddy_study import BuddyStudy, paper_names
from buddysim.papers.buddy.compressibility import CONTENTS_CAUSE, program_cause, simulate_group
from buddysim.papers.buddy.digitized_figures import MEANS, POLICIES, THRESHOLDS, figure_numbers
from buddysim.papers.buddy.means import arithmetic, geometric, values_by_workload
from buddysim.papers.buddy.why_not_reproduced import reported_policy_bars, rule_for_naive
from buddysim.papers.reported_values import reported_value
from buddysim.papers.simulated_values import SimulatedValue, simulates

#: The analyses' name of each policy of the paper.
ANALYSIS_POLICIES = {"naive": "naive", "per_alloc": "per-allocation", "final": "final"}
ITERATIONS = ("squeezenet", "resnet50")  # Fig. 8
_NEAR = 0.1
_MAX_RATIO = 4  # of a program, with the carve-out


def targets(study: BuddyStudy, name: str, same_input: bool = False) -> dict[str, Mapping[str, Any]] | None:
    """Ratio and accesses of a workload by policy, under the paper's names."""
    rows = study.analysis_rows(name, "targets", same_input)
    if rows is None:
        return None
    by_policy = {row["policy"]: row for row in rows}
    return {key: by_policy[policy] for key, policy in ANALYSIS_POLICIES.items()}


def policy_value(study: BuddyStudy, name: str, policy: str, column: str, same_input: bool = False) -> float | None:
    """A column of `targets`."""
    by_policy = targets(study, name, same_input)
    return None if by_policy is None else by_policy[policy][column]


def thresholds(study: BuddyStudy, name: str) -> dict[str, Mapping[str, Any]] | None:
    """Rows of the threshold study of a workload, under the paper's names."""
    rows = study.analysis_rows(name, "threshold")
    if rows is None:
        return None
    by_threshold = {row["threshold_fraction"]: row for row in rows}
    return {key: by_threshold[threshold] for key, threshold in THRESHOLDS.items()}


def threshold_ratio(study: BuddyStudy, name: str, key: str) -> float | None:
    """The ratio of a workload at a threshold; of the best achievable with the sectors that each entry needs."""
    by_threshold = thresholds(study, name)
    if by_threshold is None:
        return None
    ratio = by_threshold[key]["per_entry_sector_ratio" if THRESHOLDS[key] == 1 else "ratio"]
    return None if ratio is None else float(ratio)


def overflow(study: BuddyStudy, name: str) -> list[tuple[int, float | None]] | None:
    """Launches before each snapshot, and the fraction of entries that overflow at it."""
    rows = study.analysis_rows(name, "overflow")
    return None if rows is None else [(row["launches"], row["overflow_fraction"]) for row in rows]


def _workload_name(paper: str) -> str:
    return {paper_name: name for name, paper_name in paper_names().items()}[paper]


@simulates(*(number.id for number in figure_numbers() if number.id.startswith("fig7/")))
def policies(study: BuddyStudy, id: str) -> SimulatedValue:
    _, workload, key = id.split("/")
    policy = next(name for name in POLICIES if key.startswith(f"{name}_"))
    column, factor = ("ratio", 1.0) if key.endswith("_target") else ("overflow_fraction", 100.0)
    if workload in MEANS:
        group = workload.removeprefix("GMEAN_")
        by_workload = values_by_workload(study, group, lambda name: policy_value(study, name, policy, column))
        mean = (geometric if column == "ratio" else arithmetic)(by_workload.values())
        return SimulatedValue(None if mean is None else factor * mean, cause=CONTENTS_CAUSE)
    name = _workload_name(workload)
    if name not in study.names():
        return SimulatedValue(None, note="left out")
    amount = policy_value(study, name, policy, column)
    if amount is None:
        return SimulatedValue(None, note="not stored")
    replayed = policy_value(study, name, policy, "buddy_access_fraction")
    note = "" if column == "ratio" or replayed is None else f"replayed {100 * replayed:.2f} %"
    return SimulatedValue(factor * amount, note=note, cause=CONTENTS_CAUSE)


@simulates(*(number.id for number in figure_numbers() if number.id.startswith("fig9/")))
def threshold_ratios(study: BuddyStudy, id: str) -> SimulatedValue:
    _, workload, key = id.split("/")
    if workload in MEANS:
        group = workload.removeprefix("GMEAN_")
        by_workload = values_by_workload(study, group, lambda name: threshold_ratio(study, name, key))
        return SimulatedValue(geometric(by_workload.values()), cause=CONTENTS_CAUSE)
    name = _workload_name(workload)
    if name not in study.names():
        return SimulatedValue(None, note="left out")
    return SimulatedValue(threshold_ratio(study, name, key), cause=CONTENTS_CAUSE)


_POLICY_IDS = {f"buddy-{key.replace('_', '-')}": key for key in POLICIES}
_BY_ID = {
    f"{start}-{group}{end}": (policy, group.upper(), column)
    for start, policy in _POLICY_IDS.items()
    for group in ("hpc", "dl")
    for end, column in (("", "ratio"), ("-accesses", "overflow_fraction"))
    if not (policy == "per_alloc" and end)
}


@simulates(*_BY_ID)
def policy_means(study: BuddyStudy, id: str) -> SimulatedValue:
    policy, group, column = _BY_ID[id]
    if column == "ratio":
        reported = reported_policy_bars(f"{policy}_target")
        simulated = simulate_group(
            study, group, lambda name: policy_value(study, name, policy, column), "{:.2f}", reported
        )
        scattered = _scattered(study, study.names(group)) if policy != "naive" else ""
        return SimulatedValue(
            simulated.value, simulated.note, "; ".join(text for text in (simulated.cause, scattered) if text)
        )

    def percent(name: str) -> float | None:
        fraction = policy_value(study, name, policy, column)
        return None if fraction is None else 100 * fraction

    reported = {name: 100 * fraction for name, fraction in reported_policy_bars(f"{policy}_buddy_frac").items()}
    simulated = simulate_group(study, group, percent, "{:.2f}", reported, arithmetically=True)
    replayed = arithmetic(
        values_by_workload(
            study, group, lambda name: policy_value(study, name, policy, "buddy_access_fraction")
        ).values()
    )
    if simulated.value is None or replayed is None:
        return simulated
    cause = f"{simulated.cause}; {rule_for_naive()}" if policy == "naive" else simulated.cause
    return SimulatedValue(simulated.value, f"replayed {100 * replayed:.2f} %; {simulated.note}", cause)


@simulates("buddy-cg-naive", "buddy-bt-naive", "buddy-cg-per-alloc", "buddy-bt-per-alloc")
def single_ratios(study: BuddyStudy, id: str) -> SimulatedValue:
    _, name, policy = id.split("-", 2)
    key = next(key for key, name in ANALYSIS_POLICIES.items() if name.startswith(policy.partition("-")[0]))
    return SimulatedValue(policy_value(study, name, key, "ratio"), cause=_target_cause(study, name))


@simulates("buddy-squeezenet-ratio", "buddy-resnet-ratio")
def over_iteration(study: BuddyStudy, id: str) -> SimulatedValue:
    name = ITERATIONS[id == "buddy-resnet-ratio"]
    return SimulatedValue(policy_value(study, name, "final", "ratio"), cause=_target_cause(study, name))


def _raw_fractions(study: BuddyStudy, name: str) -> dict[str, float] | None:
    """Return the fraction of entries that need all four sectors, by allocation, the mean over the snapshots."""
    rows = study.analysis_rows(name, "classes")
    if rows is None:
        return None
    return {str(row["allocation"]): row["fraction_128B"] for row in rows[1:]}


def _target_cause(study: BuddyStudy, name: str) -> str:
    """Explain a workload's targets."""
    fractions = _raw_fractions(study, name)
    if not fractions:
        return program_cause(name)
    smallest = min(fractions, key=lambda allocation: fractions[allocation])
    return (
        f"no allocation has fewer entries that need all four sectors than {smallest}, with "
        f"{100 * fractions[smallest]:.0f} %; a "
        f"target above 1x needs {100 * ProfileOptions.threshold:.0f} % or fewer, in the worst snapshot. "
        f"{program_cause(name)}"
    )


def _scattered(study: BuddyStudy, names: Sequence[str]) -> str:
    """Return how many workloads have no allocation compressible enough for a target; empty if one is missing."""
    by_workload = {name: _raw_fractions(study, name) for name in names}
    if not by_workload or not all(by_workload.values()):
        return ""
    smallest = {name: min(fractions.values()) for name, fractions in by_workload.items() if fractions}
    without = [
        f"{name} {100 * fraction:.0f}" for name, fraction in smallest.items() if fraction > ProfileOptions.threshold
    ]
    if not without:
        return ""
    return (
        f"in {len(without)} of {len(names)} over {100 * ProfileOptions.threshold:.0f} % of the entries of every "
        f"allocation need all four sectors, so that no target holds the threshold (the least, %: {', '.join(without)})"
    )


@simulates("buddy-steady")
def steady(study: BuddyStudy) -> SimulatedValue:
    ranges = {}
    for name in ITERATIONS:
        fractions = [100 * fraction for _, fraction in overflow(study, name) or () if fraction is not None]
        if not fractions:
            return SimulatedValue(None, note="not stored")
        mean = sum(fractions) / len(fractions)
        ranges[name] = max(max(fractions) - mean, mean - min(fractions))
    note = ", ".join(f"{name}: within {points:.1f} points of its mean" for name, points in ranges.items())
    return SimulatedValue("steady" if max(ranges.values()) <= 3 else "changes", note=note)


@simulates("buddy-alexnet-accesses")
def alexnet_accesses(study: BuddyStudy) -> SimulatedValue:
    fraction, replayed = (
        policy_value(study, "alexnet", "final", column) for column in ("overflow_fraction", "buddy_access_fraction")
    )
    if fraction is None or replayed is None:
        return SimulatedValue(None, note="not stored")
    return SimulatedValue(
        100 * fraction, note=f"replayed {100 * replayed:.2f} %", cause=_target_cause(study, "alexnet")
    )


@simulates("buddy-hpgmg-pattern")
def hpgmg_pattern(study: BuddyStudy) -> SimulatedValue:
    rows = study.analysis_rows("hpgmg", "page-classes")
    if rows is None:
        return SimulatedValue(None, note="not stored")
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["allocation"]] = counts.get(row["allocation"], 0) + 1
    largest = max(counts, key=lambda name: counts[name])
    mixed = uniform = 0
    for row in rows:
        if row["allocation"] == largest:
            sizes = [size for key, size in row.items() if key.startswith("entry") and size is not None]
            breaks = sum(one != other for one, other in pairwise(sizes))
            mixed += 0 < breaks < len(sizes) / 4
            uniform += breaks == 0
    fraction = mixed / counts[largest]
    note = f"{100 * fraction:.0f} % of the pages of {largest}"
    cause = (
        f"of the {counts[largest]} pages of {largest} {100 * uniform / counts[largest]:.0f} % have one size; "
        "a box holds its vectors one after the other, each of many pages, so stripes are longer than a page"
    )
    return SimulatedValue("striped" if fraction > 0.5 else "not within pages", note, cause)


@simulates("buddy-hpgmg-threshold")
def hpgmg_threshold(study: BuddyStudy) -> SimulatedValue:
    """By raising the threshold: where most of the ratio between 10 % and no bound at all is reached."""
    fractions = ",".join(f"{step / 20:g}" for step in range(2, 21))
    rows = study.analysis_rows("hpgmg", "threshold", analysis_thresholds=fractions)
    if rows is None:
        return SimulatedValue(None, note="not stored")
    best = rows[0]["per_entry_sector_ratio"]
    reached = [row["threshold_fraction"] for row in rows if row["ratio"] >= (1 - _NEAR) * best]
    note = f"best achievable {best:.2f}; at 30 % {next(r['ratio'] for r in rows if r['threshold_fraction'] == 0.3):.2f}"
    return SimulatedValue(100 * reached[0] if reached else 100.0, note=note, cause=CONTENTS_CAUSE)


@simulates("buddy-near-optimal")
def near_optimal(study: BuddyStudy) -> SimulatedValue:
    far, lacking = dict[str, str](), []
    for name in study.names("HPC"):
        at, best = (threshold_ratio(study, name, key) for key in ("threshold_30", "best_achievable"))
        if at is None or best is None:
            lacking.append(name)
        elif at < (1 - _NEAR) * best:
            far[name] = f"{name} ({at:.2f} of {best:.2f})"
    if lacking:
        return SimulatedValue(None, note=f"not stored: {', '.join(lacking)}")
    text = (
        str(reported_value("buddy-near-optimal"))
        if list(far) == ["hpgmg"]
        else f"far: {', '.join(far.values()) or 'none'}"
    )
    return SimulatedValue(text, cause=_far_cause(study, list(far)))


def _far_cause(study: BuddyStudy, names: Sequence[str]) -> str:
    """Explain the entries that a threshold leaves uncompressed, in the largest compressible allocation."""
    texts = []
    for name in names:
        fractions = {one: raw for one, raw in (_raw_fractions(study, name) or {}).items() if raw < 1 - _NEAR}
        ratio = threshold_ratio(study, name, "threshold_30")
        if ratio is not None and ratio > (1 - _NEAR) * _MAX_RATIO:
            texts.append(f"{name} is limited to {_MAX_RATIO}x, which the best achievable is not")
        elif fractions:
            smallest = min(fractions, key=lambda allocation: fractions[allocation])
            largest_raw = max(fractions, key=lambda allocation: fractions[allocation])
            texts.append(
                f"in {name}'s that compress {100 * fractions[smallest]:.0f} % ({smallest}) to "
                f"{100 * fractions[largest_raw]:.0f} % "
                f"({largest_raw}) of the entries need all four sectors"
            )
    return f"compressible and incompressible entries share allocations: {'; '.join(texts)}" if texts else ""


def _ratio_at(study: BuddyStudy, key: str, name: str) -> float | None:
    return threshold_ratio(study, name, key)


@simulates("buddy-dl-threshold")
def dl_threshold(study: BuddyStudy) -> SimulatedValue:
    gains = {}
    for group in ("HPC", "DL"):
        low, high = (
            geometric(values_by_workload(study, group, partial(_ratio_at, study, key)).values())
            for key in ("threshold_10", "threshold_40")
        )
        if low is None or high is None:
            return SimulatedValue(None, note="not stored")
        gains[group] = 100 * (high / low - 1)
    text = "mostly DL" if gains["DL"] > gains["HPC"] else "mostly HPC"
    return SimulatedValue(text, note=", ".join(f"{group} {gain:.1f} %" for group, gain in gains.items()))


@simulates("buddy-largest-ratio")
def largest_ratio(study: BuddyStudy) -> SimulatedValue:
    by_workload = values_by_workload(study, "all", lambda name: policy_value(study, name, "final", "ratio"))
    known = {name: ratio for name, ratio in by_workload.items() if ratio is not None}
    if not known:
        return SimulatedValue(None, note="not stored")
    largest_raw = max(known, key=lambda name: known[name])
    return SimulatedValue(known[largest_raw], note=largest_raw)
