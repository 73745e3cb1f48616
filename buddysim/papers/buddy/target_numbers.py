"""Targets of the workloads beside the paper: policies, thresholds, what overflows (Figs. 6 to 9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from buddysim.buddy import ProfileOptions
from buddysim.papers.buddy.buddy_study import BuddyStudy, paper_names
from buddysim.papers.buddy.compressibility import CONTENTS_CAUSE, group_measured, program_cause
from buddysim.papers.buddy.digitized_figures import MEANS, POLICIES, THRESHOLDS, figure_numbers
from buddysim.papers.buddy.means import arithmetic, geometric, of_group
from buddysim.papers.buddy.why_not_reproduced import of_policy_bars, rule_for_naive
from buddysim.papers.reported_values import reported_value
from buddysim.papers.simulated_values import SimulatedValue, simulates

#: The analyses' names of the policies.
OURS = {"naive": "naive", "per_alloc": "per-allocation", "final": "final"}
ITERATIONS = ("squeezenet", "resnet50")  # Fig. 8
_NEAR = 0.1
_MOST_RATIO = 4  # of a program, with the carve-out


def targets(study: BuddyStudy, name: str, same_input: bool = False) -> dict[str, Mapping[str, Any]] | None:
    """Ratio and accesses of a workload by policy, under the paper's names."""
    rows = study.analysis_rows(name, "targets", same_input)
    if rows is None:
        return None
    by_policy = {row["policy"]: row for row in rows}
    return {key: by_policy[ours] for key, ours in OURS.items()}


def of_policy(study: BuddyStudy, name: str, policy: str, column: str, same_input: bool = False) -> float | None:
    """A column of `targets`."""
    found = targets(study, name, same_input)
    return None if found is None else found[policy][column]


def thresholds(study: BuddyStudy, name: str) -> dict[str, Mapping[str, Any]] | None:
    """Rows of the threshold study of a workload, under the paper's names."""
    rows = study.analysis_rows(name, "threshold")
    if rows is None:
        return None
    by_threshold = {row["threshold_fraction"]: row for row in rows}
    return {key: by_threshold[threshold] for key, threshold in THRESHOLDS.items()}


def threshold_ratio(study: BuddyStudy, name: str, key: str) -> float | None:
    """The ratio of a workload at a threshold; of the best achievable with the sectors that each entry needs."""
    found = thresholds(study, name)
    if found is None:
        return None
    ratio = found[key]["per_entry_sector_ratio" if THRESHOLDS[key] == 1 else "ratio"]
    return None if ratio is None else float(ratio)


def overflow(study: BuddyStudy, name: str) -> list[tuple[int, float | None]] | None:
    """Launches before each snapshot, and the share of entries that overflow there."""
    rows = study.analysis_rows(name, "overflow")
    return None if rows is None else [(row["launches"], row["overflow_fraction"]) for row in rows]


def _ours(paper: str) -> str:
    return {there: here for here, there in paper_names().items()}[paper]


@simulates(*(number.id for number in figure_numbers() if number.id.startswith("fig7/")))
def policies(study: BuddyStudy, id: str) -> SimulatedValue:
    _, workload, key = id.split("/")
    policy = next(name for name in POLICIES if key.startswith(f"{name}_"))
    column, factor = ("ratio", 1.0) if key.endswith("_target") else ("overflow_fraction", 100.0)
    if workload in MEANS:
        group = workload.removeprefix("GMEAN_")
        found = of_group(study, group, lambda name: of_policy(study, name, policy, column))
        mean = (geometric if column == "ratio" else arithmetic)(found.values())
        return SimulatedValue(None if mean is None else factor * mean, cause=CONTENTS_CAUSE)
    name = _ours(workload)
    if name not in study.names():
        return SimulatedValue(None, note="left out")
    amount = of_policy(study, name, policy, column)
    if amount is None:
        return SimulatedValue(None, note="not stored")
    replayed = of_policy(study, name, policy, "buddy_access_fraction")
    note = "" if column == "ratio" or replayed is None else f"replayed {100 * replayed:.2f} %"
    return SimulatedValue(factor * amount, note=note, cause=CONTENTS_CAUSE)


@simulates(*(number.id for number in figure_numbers() if number.id.startswith("fig9/")))
def by_threshold(study: BuddyStudy, id: str) -> SimulatedValue:
    _, workload, key = id.split("/")
    if workload in MEANS:
        group = workload.removeprefix("GMEAN_")
        found = of_group(study, group, lambda name: threshold_ratio(study, name, key))
        return SimulatedValue(geometric(found.values()), cause=CONTENTS_CAUSE)
    name = _ours(workload)
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
def of_groups(study: BuddyStudy, id: str) -> SimulatedValue:
    policy, group, column = _BY_ID[id]
    if column == "ratio":
        theirs = of_policy_bars(f"{policy}_target")
        found = group_measured(study, group, lambda name: of_policy(study, name, policy, column), "{:.2f}", theirs)
        scattered = _scattered(study, study.names(group)) if policy != "naive" else ""
        return SimulatedValue(found.value, found.note, "; ".join(text for text in (found.cause, scattered) if text))

    def percent(name: str) -> float | None:
        share = of_policy(study, name, policy, column)
        return None if share is None else 100 * share

    theirs = {name: 100 * share for name, share in of_policy_bars(f"{policy}_buddy_frac").items()}
    found = group_measured(study, group, percent, "{:.2f}", theirs, arithmetically=True)
    replayed = arithmetic(
        of_group(study, group, lambda name: of_policy(study, name, policy, "buddy_access_fraction")).values()
    )
    if found.value is None or replayed is None:
        return found
    cause = f"{found.cause}; {rule_for_naive()}" if policy == "naive" else found.cause
    return SimulatedValue(found.value, f"replayed {100 * replayed:.2f} %; {found.note}", cause)


@simulates("buddy-cg-naive", "buddy-bt-naive", "buddy-cg-per-alloc", "buddy-bt-per-alloc")
def single_ratios(study: BuddyStudy, id: str) -> SimulatedValue:
    _, name, policy = id.split("-", 2)
    key = next(key for key, ours in OURS.items() if ours.startswith(policy.partition("-")[0]))
    return SimulatedValue(of_policy(study, name, key, "ratio"), cause=_target_cause(study, name))


@simulates("buddy-squeezenet-ratio", "buddy-resnet-ratio")
def over_iteration(study: BuddyStudy, id: str) -> SimulatedValue:
    name = ITERATIONS[id == "buddy-resnet-ratio"]
    return SimulatedValue(of_policy(study, name, "final", "ratio"), cause=_target_cause(study, name))


def _raw_shares(study: BuddyStudy, name: str) -> dict[str, float] | None:
    """Share of entries that need all four sectors of each allocation, the mean over the snapshots."""
    rows = study.analysis_rows(name, "classes")
    if rows is None:
        return None
    return {str(row["allocation"]): row["fraction_128B"] for row in rows[1:]}


def _target_cause(study: BuddyStudy, name: str) -> str:
    """Why a workload's targets are what they are."""
    shares = _raw_shares(study, name)
    if not shares:
        return program_cause(name)
    least = min(shares, key=lambda allocation: shares[allocation])
    return (
        f"no allocation has fewer entries that need all four sectors than {least}, with {100 * shares[least]:.0f} %; a "
        f"target above 1x needs {100 * ProfileOptions.threshold:.0f} % or fewer, in the worst snapshot. "
        f"{program_cause(name)}"
    )


def _scattered(study: BuddyStudy, names: Sequence[str]) -> str:
    """Of how many workloads no allocation is compressible enough for a target; empty where one isn't stored."""
    found = {name: _raw_shares(study, name) for name in names}
    if not found or not all(found.values()):
        return ""
    least = {name: min(shares.values()) for name, shares in found.items() if shares}
    without = [f"{name} {100 * share:.0f}" for name, share in least.items() if share > ProfileOptions.threshold]
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
        shares = [100 * share for _, share in overflow(study, name) or () if share is not None]
        if not shares:
            return SimulatedValue(None, note="not stored")
        mean = sum(shares) / len(shares)
        ranges[name] = max(max(shares) - mean, mean - min(shares))
    note = ", ".join(f"{name}: within {points:.1f} points of its mean" for name, points in ranges.items())
    return SimulatedValue("steady" if max(ranges.values()) <= 3 else "changes", note=note)


@simulates("buddy-alexnet-accesses")
def alexnet_accesses(study: BuddyStudy) -> SimulatedValue:
    share, replayed = (
        of_policy(study, "alexnet", "final", column) for column in ("overflow_fraction", "buddy_access_fraction")
    )
    if share is None or replayed is None:
        return SimulatedValue(None, note="not stored")
    return SimulatedValue(100 * share, note=f"replayed {100 * replayed:.2f} %", cause=_target_cause(study, "alexnet"))


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
    share = mixed / counts[largest]
    note = f"{100 * share:.0f} % of the pages of {largest}"
    cause = (
        f"of the {counts[largest]} pages of {largest} {100 * uniform / counts[largest]:.0f} % have one size; "
        "a box holds its vectors one after the other, each of many pages, so stripes are longer than a page"
    )
    return SimulatedValue("striped" if share > 0.5 else "not within pages", note, cause)


@simulates("buddy-hpgmg-threshold")
def hpgmg_threshold(study: BuddyStudy) -> SimulatedValue:
    """By raising the threshold: where most of the ratio between 10 % and no bound at all is reached."""
    shares = ",".join(f"{step / 20:g}" for step in range(2, 21))
    rows = study.analysis_rows("hpgmg", "threshold", analysis_thresholds=shares)
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
    """Which entries a threshold leaves uncompressed: of the largest allocation of those that could be smaller."""
    texts = []
    for name in names:
        shares = {one: raw for one, raw in (_raw_shares(study, name) or {}).items() if raw < 1 - _NEAR}
        ratio = threshold_ratio(study, name, "threshold_30")
        if ratio is not None and ratio > (1 - _NEAR) * _MOST_RATIO:
            texts.append(f"{name} is held by the bound of {_MOST_RATIO}x, which the best achievable doesn't have")
        elif shares:
            least = min(shares, key=lambda allocation: shares[allocation])
            most = max(shares, key=lambda allocation: shares[allocation])
            texts.append(
                f"in {name}'s that compress {100 * shares[least]:.0f} % ({least}) to {100 * shares[most]:.0f} % "
                f"({most}) of the entries need all four sectors"
            )
    return f"compressible and incompressible entries share allocations: {'; '.join(texts)}" if texts else ""


@simulates("buddy-dl-threshold")
def dl_threshold(study: BuddyStudy) -> SimulatedValue:
    gains = {}
    for group in ("HPC", "DL"):
        low, high = (
            geometric(of_group(study, group, lambda name, key=key: threshold_ratio(study, name, key)).values())  # type: ignore[misc]
            for key in ("threshold_10", "threshold_40")
        )
        if low is None or high is None:
            return SimulatedValue(None, note="not stored")
        gains[group] = 100 * (high / low - 1)
    text = "mostly DL" if gains["DL"] > gains["HPC"] else "mostly HPC"
    return SimulatedValue(text, note=", ".join(f"{group} {gain:.1f} %" for group, gain in gains.items()))


@simulates("buddy-largest-ratio")
def largest_ratio(study: BuddyStudy) -> SimulatedValue:
    found = of_group(study, "all", lambda name: of_policy(study, name, "final", "ratio"))
    known = {name: ratio for name, ratio in found.items() if ratio is not None}
    if not known:
        return SimulatedValue(None, note="not stored")
    most = max(known, key=lambda name: known[name])
    return SimulatedValue(known[most], note=most)
