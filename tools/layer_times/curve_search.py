"""Fit the constants of curves by a grid search, one constant at a time, so that every machine gets the same result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from buddysim.training.cost.curve import TILE, PassTimeModel, curve_name
from buddysim.training.cost.dataset import Dataset, PassTiming
from buddysim.training.cost.fit import SHORTEST_S
from buddysim.training.cost.work import PASSES

GRID: dict[str, tuple[float, ...]] = {
    "rows": (0, 16, 32, 64, 128, 192, 256, 384, 512, 768, 1024, 2048),
    "cols": (1, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128),
    "inner": (0, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024),
    "tail": (0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 1.25, 1.5, 2, 2.5, 3, 4),
    "bandwidth": (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1),
    "launch_us": (0, 5, 10, 15, 20, 30, 40, 60),
}
START = PassTimeModel(rows=128.0, cols=16.0, inner=64.0, tail=0.5, bandwidth=0.7, launch_us=10.0)
ROUNDS = 6


def fit_curves(
    datasets: Iterable[Dataset], start: Mapping[str, PassTimeModel] | None = None
) -> dict[str, PassTimeModel]:
    """Fit the curves that several GPUs have in common, by name of the curve.

    Parameters
    ----------
    start : curve at which each search starts, by name; None: `START`
    """
    datasets = list(datasets)
    begin = start or {}
    curves = {}
    for pass_ in PASSES:
        by_name: dict[str, list[PassTiming]] = {}
        for data in datasets:
            for one in data.measured(pass_):
                by_name.setdefault(curve_name(pass_, one.group, data.winograd), []).append(one)
        for name, measured in sorted(by_name.items()):
            curves[name] = fit_curve(measured, begin.get(name, START))
    fully_connected = [one for data in datasets for one in data.measured("forward", "fc")]
    curves["fc"] = fit_curve(fully_connected, begin.get("fc", START))
    return curves


def fit_curve(measured: Sequence[PassTiming], start: PassTimeModel = START) -> PassTimeModel:
    """Fit one curve: the best one that a search along one constant at a time reaches on the grid."""
    timings = _Timings(measured)
    best, least = start, timings.loss(start)
    for _ in range(ROUNDS):
        before = least
        for name, values in GRID.items():
            for value in values:
                candidate = replace(best, **{name: float(value)})
                loss = timings.loss(candidate)
                if loss < least - 1e-9:
                    best, least = candidate, loss
        if least > before - 1e-7:
            break
    return best


class _Timings:
    """Timings of one pass as arrays, one element per timing."""

    def __init__(self, measured: Sequence[PassTiming]) -> None:
        def column(value: Callable[[PassTiming], float]) -> NDArray[np.float64]:
            return np.array([value(one) for one in measured], dtype=np.float64)

        self.rows = column(lambda one: one.product.rows)
        self.cols = column(lambda one: one.product.cols)
        self.inner = column(lambda one: one.product.inner)
        self.count = column(lambda one: one.product.count)
        self.tile = column(lambda one: TILE * one.peak.multiprocessors)
        self.flops = column(lambda one: one.peak.flops)
        self.moved_s = column(lambda one: one.moved / one.peak.bytes_per_s)
        self.seconds = column(lambda one: one.seconds)
        names = sorted({(one.machine, one.group) for one in measured})
        number = {name: at for at, name in enumerate(names)}
        self.group = np.array([number[one.machine, one.group] for one in measured], dtype=np.int64)
        self.groups = np.arange(len(names))

    def compute_s(self, curve: PassTimeModel) -> NDArray[np.float64]:
        """Return the seconds at an efficiency of one."""
        outputs = (self.rows + curve.rows) * curve.cols * np.ceil(self.cols / curve.cols) * self.count
        result: NDArray[np.float64] = 2 * (outputs + curve.tail * self.tile) * (self.inner + curve.inner) / self.flops
        return result

    def loss(self, curve: PassTimeModel) -> float:
        """Return the mean of |log(predicted / measured)|, at each group's median efficiency."""
        compute = self.compute_s(curve)
        implied = np.log(compute / np.maximum(self.seconds - curve.launch_s, SHORTEST_S))
        log_efficiency = np.asarray(ndimage.median(implied, self.group, self.groups))[self.group]
        predicted = curve.launch_s + np.maximum(compute / np.exp(log_efficiency), self.moved_s / curve.bandwidth)
        return float(np.abs(np.log(predicted / self.seconds)).mean())
