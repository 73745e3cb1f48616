"""Fit calibrations to timings: `python tools/fit_cost.py` for the bundled ones, ``buddysim calibrate`` for a user's.

A group's efficiency is the median of the efficiencies that its timings imply. It is averaged with the value on other
GPUs, which counts as two more shapes. Results are rounded to the digits of the bundled files.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from buddysim.training.cost.calibration import GROUPS, Calibration, SharedConstants
from buddysim.training.cost.curve import PassTimeModel, curve_name
from buddysim.training.cost.dataset import Dataset, passes_of
from buddysim.training.cost.traffic import unweighted_bytes
from buddysim.training.cost.work import PASSES

SHORTEST_S = 2e-6
"""A timing shorter than its launch counts as this long, without the launch."""
DIGITS = 4

PRIOR_SHAPES = 2
"""Number of shapes that the other GPUs count as: the best of 1, 2 and 4 in cross-validation of calibration timings."""


@dataclass
class ImpliedEfficiencies:
    """Logarithms of the efficiencies that a group's timings imply, and the shapes behind them."""

    values: list[float]
    shapes: set[str]

    @property
    def middle(self) -> float:
        return median(self.values)


def implied_efficiencies(
    data: Dataset, curves: Mapping[str, PassTimeModel]
) -> dict[str, dict[str, ImpliedEfficiencies]]:
    """Return the efficiencies that the timings imply, by pass and group.

    A timing of both backward passes together counts for each of them, as if their efficiencies were equal. Fully
    connected layers with forward timings only count for every pass.
    """
    implied: dict[str, dict[str, ImpliedEfficiencies]] = {pass_: {} for pass_ in PASSES}
    for timing in data.timings:
        if not timing.has_products:
            continue
        passes = passes_of(timing)
        compute = launch = 0.0
        for pass_ in passes:
            curve = curves[curve_name(pass_, timing.group, data.winograd) if timing.kind == "conv" else "fc"]
            compute += curve.compute_s(data.product(timing, pass_), data.peak)
            launch += curve.launch_s
        log_efficiency = math.log(compute / max(timing.ms / 1e3 - launch, SHORTEST_S))
        for pass_ in passes:
            group = implied[pass_].setdefault(timing.group, ImpliedEfficiencies([], set()))
            group.values.append(log_efficiency)
            group.shapes.add(timing.shape)
    if "fc" in implied["forward"]:
        for pass_ in PASSES:
            implied[pass_].setdefault("fc", implied["forward"]["fc"])
    return implied


def deviations(
    datasets: Sequence[Dataset], curves: Mapping[str, PassTimeModel]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return generic efficiencies, and logarithms of each group's efficiency over its GPU's mean, by pass and group."""
    medians = []
    for data in datasets:
        implied = implied_efficiencies(data, curves)
        medians.append({p: {g: one.middle for g, one in implied[p].items()} for p in PASSES})
    efficiency: dict[str, dict[str, float]] = {}
    deviation: dict[str, dict[str, float]] = {}
    for pass_ in PASSES:
        means = [fmean(one[pass_].values()) for one in medians]
        overall = fmean(means)
        efficiency[pass_], deviation[pass_] = {}, {}
        for group in GROUPS:
            away = [one[pass_][group] - mean for one, mean in zip(medians, means, strict=True) if group in one[pass_]]
            deviation[pass_][group] = round(fmean(away), DIGITS)
            efficiency[pass_][group] = round(math.exp(overall + fmean(away)), DIGITS)
    return efficiency, deviation


def fit_efficiencies(
    data: Dataset, curves: Mapping[str, PassTimeModel], deviation: Mapping[str, Mapping[str, float]]
) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, int]]]:
    """Fit efficiencies of one GPU by pass and group, and count the shapes behind each; empty without products.

    Parameters
    ----------
    deviation : `SharedConstants.deviation`
    """
    implied = implied_efficiencies(data, curves)
    means = {
        pass_: fmean(one.middle - deviation[pass_][group] for group, one in implied[pass_].items())
        for pass_ in PASSES
        if implied[pass_]
    }
    efficiency: dict[str, dict[str, float]] = {}
    counts: dict[str, dict[str, int]] = {}
    for pass_ in PASSES if means else ():
        mean = means.get(pass_, fmean(means.values()))
        efficiency[pass_], counts[pass_] = {}, {}
        for group in GROUPS:
            log_efficiency, shapes = mean + deviation[pass_][group], 0
            if group in implied[pass_]:
                one = implied[pass_][group]
                shapes = len(one.shapes)
                log_efficiency = (shapes * one.middle + PRIOR_SHAPES * log_efficiency) / (shapes + PRIOR_SHAPES)
            efficiency[pass_][group] = round(math.exp(log_efficiency), DIGITS)
            counts[pass_][group] = shapes
    return efficiency, counts


def fit_bandwidth(data: Dataset) -> dict[str, dict[str, float]]:
    """Fit the median fractions of the peak bandwidth that layers without products reach, by kind and pass."""
    fractions: dict[str, dict[str, list[float]]] = {}
    for timing in data.timings:
        moved = unweighted_bytes(timing)
        if moved and timing.ms > 10 * SHORTEST_S * 1e3:
            fraction = moved / (timing.ms / 1e3) / data.peak.bytes_per_s
            fractions.setdefault(timing.kind, {}).setdefault(timing.pass_, []).append(fraction)
    return {
        kind: {pass_: round(min(median(values), 1.0), DIGITS) for pass_, values in by_pass.items()}
        for kind, by_pass in fractions.items()
    }


def fit_calibration(
    data: Dataset, shared: SharedConstants, source: Sequence[str] = (), bounded: bool = False
) -> Calibration:
    """Fit the calibration of one GPU with one library version.

    Parameters
    ----------
    source : lines about the origin of the timings
    bounded : whether the timed algorithms had little workspace
    """
    efficiency, counts = fit_efficiencies(data, shared.curves, shared.deviation)
    return Calibration(
        machine=data.machine,
        library=data.library,
        efficiency=efficiency or shared.efficiency,
        bandwidth=fit_bandwidth(data),
        limited_workspace=bounded,
        measured=counts,
        source=tuple(source),
    )
