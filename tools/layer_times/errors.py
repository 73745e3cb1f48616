"""Errors of shipped models' layer times: held-out shapes, one network left out, one GPU left out, whole networks."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

import numpy as np
from numpy.typing import NDArray

from buddysim.base.textfile import LARGEST_TABLE, read_csv
from buddysim.machine.training import TrainingMachine
from buddysim.training.cost.calibration import Calibration, SharedConstants, common, shipped
from buddysim.training.cost.dataset import Dataset
from buddysim.training.cost.evaluate import errors, median_error, predicted_ms
from buddysim.training.cost.fit import deviations, fit_calibration
from buddysim.training.cost.model import CostModel
from buddysim.training.cost.timings import MeasuredPass
from buddysim.training.cost.work import PASSES
from buddysim.training.named_network import load_network
from tools.layer_times.curve_search import fit_curves
from tools.layer_times.shipped_fit import (
    BOUNDED,
    DATA_FOLDER,
    FITTED_NETWORKS,
    MeasuredNetworkPass,
    dataset,
    network_ms,
    part,
    totals,
)

FOLDS = 5
RESAMPLES = 2000


def median_interval(timings: Sequence[MeasuredPass], errors: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the median absolute relative error, by a bootstrap over shapes.

    Errors of one shape's batches and passes are correlated, so a shape is sampled with all its timings.

    Parameters
    ----------
    timings, errors : measured passes, and their relative errors
    """
    from scipy import stats

    by_shape: dict[str, list[float]] = {}
    for timing, error in zip(timings, errors, strict=True):
        by_shape.setdefault(timing.shape, []).append(abs(error))
    shapes = [np.array(off) for off in by_shape.values()]

    def sampled_median(numbers: NDArray[np.int64]) -> float:
        return float(np.median(np.concatenate([shapes[number] for number in numbers])))

    interval = stats.bootstrap(
        (np.arange(len(shapes)),),
        sampled_median,
        n_resamples=RESAMPLES,
        vectorized=False,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    return float(interval.low), float(interval.high)


def of_kind(kind: str, passes: Sequence[str] = ()) -> Callable[[MeasuredPass], bool]:
    """Return a filter of timings by kind of layer and, if `passes` is not empty, by pass.

    Parameters
    ----------
    kind : ``"conv"``, ``"fc"`` or ``"other"``
    """
    if kind == "other":
        return lambda timing: timing.kind not in ("conv", "fc")
    return lambda timing: timing.kind == kind and (not passes or timing.pass_ in passes)


@dataclass(frozen=True)
class LeftOutErrors:
    """Errors of a GPU or a network that was left out of the fit."""

    name: str
    errors: tuple[float, ...]
    measured_ms: float = 0.0
    predicted_ms: float = 0.0

    @property
    def total_error(self) -> float:
        """Return the relative error of the sum over the layers."""
        return self.predicted_ms / self.measured_ms - 1


def cross_validation() -> dict[tuple[str, str], list[float]]:
    """Return CONV errors in five folds of the calibration shapes, by GPU and library.

    Each fold is predicted by a fit without its shapes, curves included.
    """
    datasets = {key: dataset(*key, timings) for key, timings in part("calibration").items()}
    held_out: dict[tuple[str, str], list[float]] = {key: [] for key in datasets}
    for number in range(FOLDS):
        inside = {
            key: replace(data, timings=tuple(one for one in data.timings if fold(one.shape, FOLDS) != number))
            for key, data in datasets.items()
        }
        shared = _refitted([data for key, data in inside.items() if key != BOUNDED])
        for key, data in datasets.items():
            model = _model(inside[key], shared, bounded=key == BOUNDED)
            outside = [one for one in data.timings if one.kind == "conv" and fold(one.shape, FOLDS) == number]
            held_out[key] += errors(model, outside)
    return held_out


def fold(shape: str, folds: int) -> int:
    """Return the fold, 0 to `folds` - 1, of a shape in the cross-validation within the calibration timings."""
    return int(hashlib.sha256(f"fold {shape}".encode()).hexdigest(), 16) % folds


def one_gpu_left_out() -> Iterator[LeftOutErrors]:
    """Yield the CONV errors of each GPU, predicted with the mean efficiencies of the other GPUs."""
    datasets = {key: dataset(*key, timings) for key, timings in part("calibration").items() if key != BOUNDED}
    validation = part("validation")
    for key, data in datasets.items():
        others = [other for name, other in datasets.items() if name != key]
        model = CostModel(TrainingMachine.load(key[0]), key[1], None, _refitted(others))
        timings = [one for one in (*data.timings, *validation[key]) if one.kind == "conv"]
        yield LeftOutErrors(f"{key[0]}, {key[1]}", tuple(errors(model, timings)))


def one_network_left_out() -> Iterator[LeftOutErrors]:
    """Yield the errors of each network's layers, predicted by a fit without the network's shapes.

    Only the GPU that was timed layer by layer is used.
    """
    timings = part("calibration")[BOUNDED] + part("validation")[BOUNDED]
    for network in dict.fromkeys(timing.network for timing in timings):
        inside = [timing for timing in timings if timing.network == network and timing.kind == "conv"]
        shapes = {timing.shape for timing in inside}
        remaining = [timing for timing in timings if timing.network != network and timing.shape not in shapes]
        model = _model(dataset(*BOUNDED, remaining), common(), bounded=True)
        for passes in (("forward",), ("backward",)):
            selected = [timing for timing in inside if timing.pass_ in passes]
            predicted = [predicted_ms(model, timing) for timing in selected]
            off = tuple(ms / timing.ms - 1 for ms, timing in zip(predicted, selected, strict=True))
            yield LeftOutErrors(f"{network}, {passes[0]}", off, sum(timing.ms for timing in selected), sum(predicted))


def one_percentage() -> dict[tuple[str, str], list[float]]:
    """Return held-out errors of the simplest model, for comparison: one fraction of the peak rate per GPU and pass."""
    validation = part("validation")
    errors: dict[tuple[str, str], list[float]] = {}
    for key, timings in part("calibration").items():
        flops = float(TrainingMachine.load(key[0]).training.fp32)
        for passes in (("forward",), ("backward_data",), ("backward_filter",), ("backward",)):
            inside = [timing for timing in timings if of_kind("conv", passes)(timing)]
            if inside:
                fraction = median(timing.work.flops / flops / timing.ms * 1e3 for timing in inside)
                for timing in validation[key]:
                    if of_kind("conv", passes)(timing):
                        off = timing.work.flops / flops / fraction * 1e3 / timing.ms - 1
                        errors.setdefault(key, []).append(off)
    return errors


def whole_networks() -> Iterator[tuple[MeasuredNetworkPass, float]]:
    """Yield each measured pass of a whole network with its modelled time, in milliseconds.

    The algorithms are the fastest ones; with cudnn2, the memory-optimal ones.
    """
    models = {library: CostModel.load("titan-x", library) for library in ("cudnn2", "cudnn3", "cudnn4")}
    for total in totals():
        if total.kernels == "cudnn":
            conv = "implicit_gemm" if total.library == "cudnn2" else "fastest"
            yield total, total.modelled_ms(models[total.library], conv)


@dataclass(frozen=True)
class IndependentTiming:
    """Whole network, forward and backward, measured by others and part of no fit."""

    machine: str
    library: str
    version: str
    network: str
    batch: int
    forward_ms: float
    backward_ms: float
    modelled_forward_ms: float
    modelled_backward_ms: float

    @property
    def forward_error(self) -> float:
        return self.modelled_forward_ms / self.forward_ms - 1

    @property
    def backward_error(self) -> float:
        return self.modelled_backward_ms / self.backward_ms - 1


def independent_networks() -> Iterator[IndependentTiming]:
    """Yield the networks of cnn-benchmarks with their modelled times, gradient of the image included."""
    models: dict[tuple[str, str], CostModel] = {}
    for row in read_csv(DATA_FOLDER / "networks-cnn-benchmarks.csv", "table", LARGEST_TABLE):
        key = (row["machine"], row["library"])
        model = models.setdefault(key, CostModel.load(*key))
        network, batch = load_network(row["network"]), int(row["batch"])
        forward, data, filters = (network_ms(model, network, batch, pass_) for pass_ in PASSES)
        measured = (float(row["forward_ms"]), float(row["backward_ms"]))
        yield IndependentTiming(*key, row["version"], row["network"], batch, *measured, forward, data + filters)


@dataclass(frozen=True)
class MeasuredIteration:
    """Whole iteration, measured by others and part of no fit, with its modelled time.

    Attributes
    ----------
    calibrated : whether the GPU's own timings are behind it
    predicted_from : GPU whose timings of operators are behind it; empty: none are
    """

    machine: str
    precision: str
    network: str
    batch: int
    ms: float
    by: str
    modelled_ms: float
    calibrated: bool
    predicted_from: str

    @property
    def ratio(self) -> float:
        """Return modelled over measured time."""
        return self.modelled_ms / self.ms


def outside_iterations() -> Iterator[MeasuredIteration]:
    """Yield the iterations of `iterations-outside.csv`, without the image's gradient, on the machine's own library."""
    for row in read_csv(DATA_FOLDER / "iterations-outside.csv", "table", LARGEST_TABLE):
        last = row["layout"] == "last"
        model = CostModel.load(row["machine"], precision=row["precision"], channels_last=last)
        network, batch = load_network(row["network"]), int(row["batch"])
        modelled = sum(network_ms(model, network, batch, pass_, image_gradient=False) for pass_ in PASSES)
        names = (row["machine"], row["precision"], row["network"])
        origin = "" if model.described is None else model.operators.origin(row["precision"])
        yield MeasuredIteration(*names, batch, float(row["ms"]), row["by"], modelled, model.calibrated, origin)


def seen(total: MeasuredNetworkPass) -> bool:
    """Return whether a whole network was part of the fit of ratios and FFT rates."""
    return total.network in FITTED_NETWORKS and total.library in ("cudnn2", "cudnn4")


def held_out() -> dict[tuple[str, str], dict[str, list[MeasuredPass]]]:
    """Return the bundled timings by GPU and library, then part: calibration and validation."""
    inside, outside = part("calibration"), part("validation")
    return {key: {"calibration": inside[key], "validation": outside[key]} for key in sorted(inside)}


def shipped_model(key: tuple[str, str]) -> CostModel:
    """Return the bundled model of a GPU and library."""
    return CostModel(TrainingMachine.load(key[0]), key[1], shipped()[key], common())


def mean_median(errors: Iterable[Sequence[float]]) -> float:
    """Return the mean of the median errors of several parts."""
    return fmean(median_error(one) for one in errors)


def _refitted(datasets: Sequence[Dataset]) -> SharedConstants:
    shared = common()
    curves = fit_curves(datasets, start=shared.curves)
    efficiency, deviation = deviations(datasets, curves)
    return replace(shared, curves=curves, efficiency=efficiency, deviation=deviation)


def _model(data: Dataset, shared: SharedConstants, bounded: bool) -> CostModel:
    calibration: Calibration = fit_calibration(data, shared, bounded=bounded)
    return CostModel(TrainingMachine.load(data.machine), data.library, calibration, shared)
