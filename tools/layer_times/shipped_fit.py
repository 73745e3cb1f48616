"""Fit the bundled calibrations to the bundled timings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median

import buddysim.training.cost
from buddysim.base.textfile import LARGEST_TABLE, read_csv
from buddysim.machine.training import TrainingMachine
from buddysim.training.cost.algorithms import MEMORY_OPTIMAL
from buddysim.training.cost.calibration import Calibration, SharedConstants, common_toml
from buddysim.training.cost.curve import PeakRates
from buddysim.training.cost.dataset import Dataset
from buddysim.training.cost.fit import DIGITS, deviations, fit_bandwidth, fit_calibration
from buddysim.training.cost.model import CostModel
from buddysim.training.cost.timings import MeasuredPass, read_timings
from buddysim.training.cost.work import PASSES, WINOGRAD_CLASSES, ConvWork, Pass
from buddysim.training.named_network import load_network
from buddysim.training.networks.graph import Network
from tools.layer_times.curve_search import fit_curves

DATA_FOLDER = Path(buddysim.training.cost.__file__).parent / "data"

REFERENCE = "titan-x"
"""GPU on which CONV algorithms were compared: the one with timings of several library versions."""

BOUNDED = (REFERENCE, "cudnn4")
"""GPU and library with timings of algorithms with at most 8 MiB of workspace; all other timings are of the fastest."""

FITTED_NETWORKS = ("alexnet", "overfeat", "vgg11")
"""Whole networks that ratios between algorithms are fitted to; the other networks validate."""

ASSUMED_NONFUSED = 1.1
"""Time of Winograd with separate transforms over Winograd in one kernel, where both are possible (assumed)."""

FFT_GRID = tuple(step / 100 for step in range(20, 101, 2))
"""Candidate fractions of the peak rate for products of spectra."""


@dataclass(frozen=True)
class MeasuredNetworkPass:
    """Measured pass of a whole network."""

    library: str
    kernels: str
    network: str
    batch: int
    pass_: Pass
    ms: float

    @property
    def image_gradient(self) -> bool:
        """Return whether the first CONV's gradient with respect to the image was computed.

        Scripts from the time of cuDNN 3 and 4 switch it off (``features:get(1).gradInput = nil``), older ones do not.
        Which script ran cuDNN 2 is not recorded, but its ratio of passes is that of the older runs.
        """
        return self.library == "cudnn2"

    def modelled_ms(self, model: CostModel, conv: str = "fastest") -> float:
        """Return the modelled time of the pass, in milliseconds."""
        network = load_network(self.network)
        return network_ms(model, network, self.batch, self.pass_, conv=conv, image_gradient=self.image_gradient)


def part(name: str) -> dict[tuple[str, str], list[MeasuredPass]]:
    """Return the bundled timings of a part (``"calibration"``, ``"validation"``) by machine and library."""
    datasets = {}
    for path in sorted((DATA_FOLDER / name).glob("*.csv")):
        machine, _, library = path.stem.rpartition("-")
        datasets[machine, library] = read_timings(path)
    return datasets


def dataset(machine: str, library: str, timings: Sequence[MeasuredPass]) -> Dataset:
    """Return timings together with the peak rates of their GPU."""
    return Dataset(machine, library, PeakRates.of(TrainingMachine.load(machine)), tuple(timings))


def totals() -> Iterator[MeasuredNetworkPass]:
    """Yield the measured whole networks."""
    for row in read_csv(DATA_FOLDER / "networks-titan-x.csv", "table", LARGEST_TABLE):
        (pass_,) = (one for one in PASSES if one == row["pass"])
        yield MeasuredNetworkPass(
            row["library"], row["kernels"], row["network"], int(row["batch"]), pass_, float(row["ms"])
        )


def comments(machine: str, library: str) -> tuple[str, ...]:
    """Return the comment lines of a GPU's calibration timings, which name their source."""
    path = DATA_FOLDER / "calibration" / f"{machine}-{library}.csv"
    lines = path.read_text(encoding="utf-8").splitlines()
    return tuple(line.removeprefix("# ") for line in lines if line.startswith("#"))


def fitted_files() -> dict[str, str]:
    """Fit everything, and return the text of every fitted file by its name."""
    shared, calibrations = fit_everything({key: dataset(*key, timings) for key, timings in part("calibration").items()})
    files = {"common.toml": common_toml(shared)}
    for (machine, library), calibration in calibrations.items():
        files[f"{machine}-{library}.toml"] = calibration.to_toml()
    return files


def fit_everything(
    datasets: dict[tuple[str, str], Dataset],
) -> tuple[SharedConstants, dict[tuple[str, str], Calibration]]:
    """Fit curves from all GPUs whose fastest algorithms were timed, then efficiencies, then ratios of algorithms."""
    fastest = [data for key, data in datasets.items() if key != BOUNDED]
    curves = fit_curves(fastest)
    efficiency, deviation = deviations(fastest, curves)
    shared = SharedConstants(
        curves=curves,
        efficiency=efficiency,
        deviation=deviation,
        bandwidth=fit_bandwidth(datasets[BOUNDED]) if BOUNDED in datasets else {},
        ratio={},
        fft={},
    )
    calibrations = {
        key: fit_calibration(data, shared, comments(*key), bounded=key == BOUNDED) for key, data in datasets.items()
    }
    return with_ratios(shared, calibrations, datasets), calibrations


def with_ratios(
    shared: SharedConstants, calibrations: dict[tuple[str, str], Calibration], datasets: dict[tuple[str, str], Dataset]
) -> SharedConstants:
    """Return the constants with the ratios between algorithms, fitted on the reference GPU."""
    machine = TrainingMachine.load(REFERENCE)
    bounded, fastest = calibrations[BOUNDED], calibrations[REFERENCE, "cudnn5"]
    unit: dict[str, dict[str, float]] = {
        pass_: {MEMORY_OPTIMAL: 1.0, "gemm": 1.0, "winograd": 1.0, "winograd_nonfused": 1.0} for pass_ in PASSES
    }
    neutral = replace(shared, ratio=unit, fft=_same(1e-4))
    four, five = (CostModel(machine, one.library, one, neutral) for one in (bounded, fastest))
    ratio = {pass_: dict(table) for pass_, table in unit.items()}
    for pass_ in PASSES:
        ratio[pass_]["winograd_nonfused"] = 1.0 if pass_ == "backward_filter" else ASSUMED_NONFUSED
        shapes = [timing.work for timing in datasets[REFERENCE, "cudnn5"].of_pass(pass_)]
        gains = [_winograd_gain(four, five, work, pass_) for work in shapes if work.conv_class in WINOGRAD_CLASSES]
        ratio[pass_]["winograd"] = round(min(median(gains), 1.0), DIGITS)
        measured = [total for total in totals() if total.pass_ == pass_ and total.network in FITTED_NETWORKS]
        oldest = [total for total in measured if total.library == "cudnn2"]
        ratio[pass_][MEMORY_OPTIMAL] = _slower(four, [total for total in oldest if total.kernels == "cudnn"])
        ratio[pass_]["gemm"] = _slower(four, [total for total in oldest if total.kernels == "nn"])
    partly = replace(shared, ratio=ratio, fft={})
    fft: dict[str, float] = {}
    for pass_ in PASSES:
        newest = [
            total
            for total in totals()
            if total.library == "cudnn4" and total.pass_ == pass_ and total.network in FITTED_NETWORKS
        ]
        fft[pass_] = min(FFT_GRID, key=lambda rate: _off(partly, bounded, machine, rate, newest))
    return replace(partly, fft=fft)


def _same(rate: float) -> dict[str, float]:
    return {**dict.fromkeys(PASSES, rate)}


def _winograd_gain(four: CostModel, five: CostModel, work: ConvWork, pass_: Pass) -> float:
    """Time of the multiplications with Winograd, without the overhang of tiles, over that of the direct method."""
    direct = four.compute_s(work, pass_)[0]
    tiles = work.tiled_product(pass_).rows / work.product(pass_).rows
    return five.compute_s(work, pass_)[1] / tiles / direct


def _slower(model: CostModel, measured: Sequence[MeasuredNetworkPass]) -> float:
    """Median ratio of measured CONV time to that of the direct method, over whole networks; at least 1."""
    ratios = []
    for total in measured:
        network = load_network(total.network)
        rest = network_ms(model, network, total.batch, total.pass_, conv=None)
        direct = network_ms(model, network, total.batch, total.pass_, rest=False, conv="implicit_precomp_gemm")
        ratios.append((total.ms - rest) / direct)
    return round(max(median(ratios), 1.0), DIGITS)


def _off(
    shared: SharedConstants,
    calibration: Calibration,
    machine: TrainingMachine,
    rate: float,
    measured: Sequence[MeasuredNetworkPass],
) -> float:
    """Mean relative error of whole networks with the fastest algorithms, at a given rate of products of spectra."""
    model = CostModel(machine, calibration.library, calibration, replace(shared, fft=_same(rate)))
    return fmean(abs(total.modelled_ms(model) / total.ms - 1) for total in measured)


def network_ms(
    model: CostModel,
    network: Network,
    batch: int,
    pass_: Pass,
    *,
    conv: str | None = "fastest",
    rest: bool = True,
    image_gradient: bool = True,
) -> float:
    """Return the modelled milliseconds of one pass over all layers.

    Parameters
    ----------
    conv : name of the CONV algorithm, or ``"fastest"``; None: CONV layers are left out
    rest : whether layers other than CONV count
    image_gradient : whether the gradient with respect to the image counts
    """
    spent = 0
    for layer in network.layers:
        if layer.conv is not None:
            skipped = pass_ == "backward_data" and layer.inputs == (0,) and not image_gradient
            if conv is not None and not skipped:
                algorithms = model.conv_algorithms(layer, batch, pass_)
                spent += next(one.time_ps for one in algorithms if conv in ("fastest", one.name))
        elif rest:
            if layer.gemms or pass_ == "forward":
                spent += model.time_ps(layer, batch, pass_)
            elif pass_ == "backward_data":
                spent += model.time_ps(layer, batch, "backward")
    return spent / 1e9
