"""Contributions to a mean that differs from the paper's: the workloads, and the bottlenecks of their runs."""

from __future__ import annotations

from collections.abc import Mapping
from math import log
from statistics import fmean, geometric_mean

from buddysim.papers.buddy.buddy_study import paper_names
from buddysim.papers.buddy.digitized_figures import AXIS, figures
from buddysim.sweep.cached_results import Result

#: Workloads are named until they explain so much of a miss.
_EXPLAINED = 0.8
_POINTS = 0.5  # in an arithmetic mean
_CHANGED = 5.0  # per cent of a workload's traffic
WHY = "other data values than the paper's (Memory of each workload)"


def per_entry_ratios() -> dict[str, float]:
    """The paper's ratio of each workload over its run; points above the axis count as that."""
    bars = figures()["fig3_ratio_over_time_10_snapshots"]
    return {
        name: geometric_mean(AXIS if ratio is None else ratio for ratio in bars[paper])
        for name, paper in paper_names().items()
    }


def reported_policy_bars(key: str) -> dict[str, float]:
    """The paper's bars of Fig. 7: ``naive_target``, ``final_buddy_frac``, .."""
    bars = figures()["fig7_ratio_and_buddy_accesses"]
    return {name: bars[paper][key] for name, paper in paper_names().items()}


def error_contributions(
    simulated: Mapping[str, float | None], reported: Mapping[str, float], arithmetically: bool = False
) -> str:
    """Return the workloads that contribute most to the error of a mean, with both values; empty if one is missing.

    Parameters
    ----------
    simulated, reported : values by workload; `reported` may have more workloads
    arithmetically : what each adds to the mean; else its part of the logarithm of the means' quotient
    """
    errors = {}
    for name, value in simulated.items():
        if value is None:
            return ""
        errors[name] = value - reported[name] if arithmetically else log(value / reported[name])
    total = sum(errors.values())
    if not total:
        return ""
    if arithmetically:
        points = {name: value / len(errors) for name, value in errors.items() if abs(value / len(errors)) >= _POINTS}
        each = (f"{name} {simulated[name]:.1f} for {reported[name]:.1f} ({points[name]:+.1f})" for name in points)
        return f"differences to the bars of the ISCA version, in points of the mean: {', '.join(each)}"
    named, explained = [], 0.0
    for name in sorted(errors, key=lambda one: -errors[one] / total):
        if explained >= _EXPLAINED:
            break
        explained += errors[name] / total
        named.append(f"{name} {simulated[name]:.2f} for {reported[name]:.2f} ({100 * errors[name] / total:.0f} %)")
    return f"contributions to the error of the mean, from the bars of the ISCA version: {', '.join(named)}"


def rule_for_naive() -> str:
    """Return workloads whose naive target by buddysim's rule differs from the paper's, on the paper's own ratios."""
    ratios, bars = per_entry_ratios(), reported_policy_bars("naive_target")
    ruled = {name: max(target for target in (1.0, 1.33, 2.0, 4.0) if target <= ratio) for name, ratio in ratios.items()}
    other = [f"{name} ({ruled[name]:g}x, not {bars[name]:g}x)" for name in ruled if ruled[name] != bars[name]]
    return (
        "the paper does not say how it chooses the one target; buddysim takes the largest not above the per-entry "
        f"ratio; by this rule, the paper's Fig. 3 contradicts its Fig. 7 for {', '.join(other)}"
    )


def buddy_pressure(ideal: Mapping[str, Result], buddy: Mapping[str, Result]) -> str:
    """Return the link traffic under Buddy Compression, and the saved DRAM traffic."""
    percents = {name: 100 * result["buddy.access_fraction"] for name, result in buddy.items()}
    busy = {name: 100 * _link_utilization(result) for name, result in buddy.items()}
    moved = {name: 100 * (_device_bytes(buddy[name]) / _device_bytes(result) - 1) for name, result in ideal.items()}
    mean = " on average" if len(buddy) > 1 else ""
    over = [f"{name} {percent:.1f}" for name, percent in percents.items() if percent > 1]
    other = [f"{name} {change:+.0f} %" for name, change in moved.items() if abs(change) > _CHANGED]
    texts = [f"{fmean(percents.values()):.2f} % of fills and write-backs reach buddy memory{mean}"]
    if mean and over:
        texts[0] += f" (over 1 %: {', '.join(over)})"
    texts.append(f"the link is busy {fmean(busy.values()):.1f} % of the time{mean}")
    if other:
        texts.append(f"device memory moves other bytes than ideal's by: {', '.join(other)}")
    return "; ".join(texts)


def bandwidth_pressure(ideal: Mapping[str, Result], compressed: Mapping[str, Result]) -> str:
    """Return device memory's traffic without and with compression."""
    busy = {name: 100 * result["utilization.dram_channels"] for name, result in ideal.items()}
    moved = {
        name: 100 * (_device_bytes(compressed[name]) / _device_bytes(result) - 1) for name, result in ideal.items()
    }
    each = ", ".join(f"{name} {busy[name]:.0f} and {moved[name]:+.0f} %" for name in ideal)
    return f"device memory of ideal is busy for, and bandwidth compression moves other bytes by: {each}"


def _link_utilization(result: Result) -> float:
    return max(float(result["utilization.link_read"]), float(result["utilization.link_write"]))


def _device_bytes(result: Result) -> int:
    return int(result["device.read_bytes"]) + int(result["device.write_bytes"])
