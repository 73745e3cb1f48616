"""Fits calibrations to timings: `python -m tools.fit_cost` for those that ship, ``buddysim calibrate`` for a user's.

A group's efficiency is the median of those that its timings imply, drawn towards what the group has on other GPUs as if
that were two more shapes. The constants of a curve are searched coordinate by coordinate on a grid, so that any machine
finds the same ones; results are rounded to what ships.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buddysim.training.cost.calibration import GROUPS, Calibration, Common, version_of
from buddysim.training.cost.curve import TILE, Curve, Peak, curve_name
from buddysim.training.cost.timings import Timing
from buddysim.training.cost.traffic import unweighted_bytes
from buddysim.training.cost.work import PASSES, WINOGRAD_CLASSES, Pass, Product

DIGITS = 4
SHORTEST_S = 2e-6
"""A timing shorter than its launch counts as this long beside it."""

PRIOR_SHAPES = 2
"""How many shapes the other GPUs count for; cross-validation within the calibration timings chose it among 1, 2, 4."""

GRID: dict[str, tuple[float, ...]] = {
    "rows": (0, 16, 32, 64, 128, 192, 256, 384, 512, 768, 1024, 2048),
    "cols": (0, 4, 8, 12, 16, 24, 32, 48, 64, 96),
    "inner": (0, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024),
    "tail": (0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 1.25, 1.5, 2, 2.5, 3, 4),
    "bandwidth": (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1),
    "launch_us": (0, 5, 10, 15, 20, 30, 40, 60),
}
START = Curve(rows=128.0, cols=16.0, inner=64.0, tail=0.5, bandwidth=0.7, launch_us=10.0)
ROUNDS = 6


@dataclass(frozen=True)
class Measured:
    """One timing of one pass on one GPU, ready to be fitted."""

    machine: str
    group: str
    product: Product
    moved: float
    seconds: float


def products(timing: Timing, pass_: Pass) -> Product:
    """The matrix product of a CONV's or an FC's pass."""
    if timing.kind == "conv":
        return timing.work.product(pass_)
    return timing.product.of_pass(pass_)


def with_waste(timing: Timing, pass_: str, winograd: bool) -> float:
    """How many more operations the fastest algorithm does because its tiles overhang the map."""
    overhangs = winograd and timing.group in WINOGRAD_CLASSES and pass_ != "backward_filter"
    return timing.work.tile_waste if overhangs else 1.0


class _Arrays:
    """Timings of one pass as arrays, for the search of a curve."""

    def __init__(self, measured: Sequence[tuple[Measured, Peak, float]]) -> None:
        of: Any = lambda pick: np.array([pick(*row) for row in measured], dtype=np.float64)  # noqa: E731
        self.rows, self.cols = of(lambda m, p, w: m.product.rows), of(lambda m, p, w: m.product.cols)
        self.inner = of(lambda m, p, w: m.product.inner)
        self.tiles = of(lambda m, p, w: m.product.rows * m.product.cols * m.product.count / TILE)
        self.base_s = of(lambda m, p, w: m.product.flops * w / p.flops)
        self.multiprocessors = of(lambda m, p, w: p.multiprocessors)
        self.moved_s = of(lambda m, p, w: m.moved / p.bytes_per_s)
        self.seconds = of(lambda m, p, w: m.seconds)
        names = sorted({(m.machine, m.group) for m, _, _ in measured})
        self.names = names
        self.members = [
            np.array([place for place, (m, _, _) in enumerate(measured) if (m.machine, m.group) == name])
            for name in names
        ]

    def compute_s(self, curve: Curve) -> NDArray[np.float64]:
        stretched = 1 + curve.rows / self.rows + curve.tail * self.multiprocessors / self.tiles
        result: NDArray[np.float64] = (
            self.base_s * stretched * (1 + curve.cols / self.cols) * (1 + curve.inner / self.inner)
        )
        return result

    def implied(self, curve: Curve) -> NDArray[np.float64]:
        """Logarithm of the efficiency that each timing implies."""
        result: NDArray[np.float64] = np.log(
            self.compute_s(curve) / np.maximum(self.seconds - curve.launch_s, SHORTEST_S)
        )
        return result

    def loss(self, curve: Curve) -> float:
        """Mean of the absolute logarithms of predicted over measured, at each group's own efficiency."""
        implied = self.implied(curve)
        log_efficiency = np.empty_like(implied)
        for members in self.members:
            log_efficiency[members] = np.median(implied[members])
        compute = self.compute_s(curve) / np.exp(log_efficiency)
        predicted = curve.launch_s + np.maximum(compute, self.moved_s / curve.bandwidth)
        return float(np.abs(np.log(predicted / self.seconds)).mean())


def fit_curve(measured: Sequence[tuple[Measured, Peak, float]], start: Curve = START) -> Curve:
    """The curve on the grid with the least loss that a search along one constant at a time finds."""
    arrays = _Arrays(measured)
    best, least = start, arrays.loss(start)
    for _ in range(ROUNDS):
        before = least
        for name, values in GRID.items():
            for value in values:
                candidate = replace(best, **{name: float(value)})
                loss = arrays.loss(candidate)
                if loss < least - 1e-9:
                    best, least = candidate, loss
        if least > before - 1e-7:
            break
    return best


@dataclass(frozen=True)
class Dataset:
    """The timings of one GPU with one library version."""

    machine: str
    library: str
    peak: Peak
    timings: tuple[Timing, ...]

    @property
    def winograd(self) -> bool:
        """Whether the fastest algorithm for 3x3 windows is Winograd's."""
        version = version_of(self.library)
        return version is None or version >= 5

    def of_pass(self, pass_: str, kind: str = "conv") -> list[Timing]:
        return [timing for timing in self.timings if timing.kind == kind and timing.pass_ == pass_]

    def measured(self, pass_: Pass, kind: str = "conv") -> list[tuple[Measured, Peak, float]]:
        """What a curve is fitted to."""
        found = []
        for timing in self.of_pass(pass_, kind):
            product = products(timing, pass_)
            moved = float(timing.work.bytes) if kind == "conv" else product.bytes
            one = Measured(self.machine, timing.group, product, moved, timing.ms / 1e3)
            found.append((one, self.peak, with_waste(timing, pass_, self.winograd)))
        return found


def fit_curves(datasets: Iterable[Dataset], start: Mapping[str, Curve] | None = None) -> dict[str, Curve]:
    """The curves that several GPUs share."""
    everything = list(datasets)
    begin = start or {}
    curves = {}
    for pass_ in PASSES:
        by_name: dict[str, list[tuple[Measured, Peak, float]]] = {}
        for one in everything:
            for row in one.measured(pass_):
                by_name.setdefault(curve_name(pass_, row[0].group, one.winograd), []).append(row)
        for name, rows in sorted(by_name.items()):
            curves[name] = fit_curve(rows, begin.get(name, START))
    fully_connected = [row for one in everything for row in one.measured("forward", "fc")]
    curves["fc"] = fit_curve(fully_connected, begin.get("fc", START))
    return curves


@dataclass
class Implied:
    """Logarithms of the efficiencies that the timings of a group imply, and how many shapes they are of."""

    values: list[float]
    shapes: set[str]

    @property
    def middle(self) -> float:
        return median(self.values)


def implied_efficiencies(data: Dataset, curves: Mapping[str, Curve]) -> dict[str, dict[str, Implied]]:
    """What the timings imply, by pass and group.

    A timing of both backward passes together counts for each of them, as if both had the same efficiency; fully
    connected layers that were timed forward only count for every pass.
    """
    found: dict[str, dict[str, Implied]] = {pass_: {} for pass_ in PASSES}
    for timing in data.timings:
        if timing.kind not in ("conv", "fc"):
            continue
        passes: tuple[Pass, ...] = tuple(
            pass_ for pass_ in PASSES if timing.pass_ == pass_ or (timing.pass_ == "backward" and pass_ != "forward")
        )
        compute = launch = 0.0
        for pass_ in passes:
            curve = curves[curve_name(pass_, timing.group, data.winograd) if timing.kind == "conv" else "fc"]
            compute += curve.compute_s(products(timing, pass_), data.peak) * with_waste(timing, pass_, data.winograd)
            launch += curve.launch_s
        implied = math.log(compute / max(timing.ms / 1e3 - launch, SHORTEST_S))
        for pass_ in passes:
            group = found[pass_].setdefault(timing.group, Implied([], set()))
            group.values.append(implied)
            group.shapes.add(timing.shape)
    if "fc" in found["forward"]:
        for pass_ in PASSES:
            found[pass_].setdefault("fc", found["forward"]["fc"])
    return found


def deviations(datasets: Sequence[Dataset], curves: Mapping[str, Curve]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Generic efficiencies, and how far each group lies from a GPU's mean (logarithms), by pass and group."""
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
    data: Dataset, curves: Mapping[str, Curve], deviation: Mapping[str, Mapping[str, float]]
) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, int]]]:
    """Efficiencies of one GPU by pass and group, and the shapes behind each; without products, nothing."""
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
            drawn, shapes = mean + deviation[pass_][group], 0
            if group in implied[pass_]:
                one = implied[pass_][group]
                shapes = len(one.shapes)
                drawn = (shapes * one.middle + PRIOR_SHAPES * drawn) / (shapes + PRIOR_SHAPES)
            efficiency[pass_][group] = round(math.exp(drawn), DIGITS)
            counts[pass_][group] = shapes
    return efficiency, counts


def fit_bandwidth(data: Dataset) -> dict[str, dict[str, float]]:
    """Shares of the peak bandwidth that layers without products reach, by kind and pass: medians."""
    shares: dict[str, dict[str, list[float]]] = {}
    for timing in data.timings:
        moved = unweighted_bytes(timing)
        if moved and timing.ms > 10 * SHORTEST_S * 1e3:
            share = moved / (timing.ms / 1e3) / data.peak.bytes_per_s
            shares.setdefault(timing.kind, {}).setdefault(timing.pass_, []).append(share)
    return {
        kind: {pass_: round(min(median(values), 1.0), DIGITS) for pass_, values in by_pass.items()}
        for kind, by_pass in shares.items()
    }


def fit_calibration(data: Dataset, shared: Common, source: Sequence[str] = (), bounded: bool = False) -> Calibration:
    """The calibration of one GPU with one library version."""
    efficiency, counts = fit_efficiencies(data, shared.curves, shared.deviation)
    return Calibration(
        machine=data.machine,
        library=data.library,
        efficiency=efficiency or shared.efficiency,
        bandwidth=fit_bandwidth(data),
        bounded_workspace=bounded,
        measured=counts,
        source=tuple(source),
    )
