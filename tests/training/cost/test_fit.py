"""Bundled timings: the split follows its rule, and a fit reproduces the bundled numbers and a known model."""

from __future__ import annotations

import random
from dataclasses import replace
from statistics import median

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.machine import TrainingMachine
from buddysim.training.cost import CostModel
from buddysim.training.cost.calibration import (
    GROUPS,
    Calibration,
    common,
    parse_calibration,
    shipped,
    version_of,
)
from buddysim.training.cost.curve import PeakRates
from buddysim.training.cost.dataset import Dataset
from buddysim.training.cost.evaluate import errors, median_error, predicted_ms
from buddysim.training.cost.fit import fit_calibration
from buddysim.training.cost.split import held_out_shapes, split
from buddysim.training.cost.timings import MeasuredPass
from buddysim.training.cost.work import PASSES
from tools.layer_times.curve_search import fit_curve
from tools.layer_times.errors import (
    held_out,
    independent_networks,
    median_interval,
    of_kind,
    outside_iterations,
    shipped_model,
)
from tools.layer_times.shipped_fit import DATA_FOLDER, FITTED_NETWORKS, fitted_files, part, totals

WITH_TARGET = [("titan-x", "cudnn4"), ("titan-x", "cudnn5"), ("titan-xp", "cudnn5")]
WITH_TARGET += [("m40", "cudnn5"), ("p100", "cudnn5"), ("v100", "cudnn7")]
PARTS = {name: part(name) for name in ("calibration", "validation")}


@pytest.mark.parametrize("key", sorted(PARTS["calibration"]))
def test_calibration_and_validation_are_disjoint_and_split_by_the_rule(key: tuple[str, str]) -> None:
    inside, outside = PARTS["calibration"][key], PARTS["validation"][key]
    shapes, held = {timing.shape for timing in inside}, {timing.shape for timing in outside}
    assert shapes
    assert held
    assert not shapes & held
    assert held_out_shapes(inside + outside) == held
    again, out = split(inside + outside)
    assert (len(again), len(out)) == (len(inside), len(outside))


def test_the_same_shapes_are_held_out_on_every_gpu_of_a_source() -> None:
    held = {
        key: {timing.shape for timing in timings if timing.kind == "conv"}
        for key, timings in PARTS["validation"].items()
        if key != ("titan-x", "cudnn4")
    }
    assert len(held) == 8
    assert len({frozenset(shapes) for shapes in held.values()}) == 1


def test_both_parts_are_of_the_same_gpus_and_each_names_source_and_licence() -> None:
    assert PARTS["calibration"].keys() == PARTS["validation"].keys() == shipped().keys()
    facts = {DATA_FOLDER / "iterations-outside.csv", DATA_FOLDER / "operators" / "outside.csv"}
    assert all("no licence stated" in path.read_text(encoding="utf-8") for path in facts)
    for path in {*DATA_FOLDER.glob("*/*.csv"), *DATA_FOLDER.glob("*.csv")} - facts:
        first = path.read_text(encoding="utf-8").splitlines()[0]
        assert first.startswith("# source: github.com/")
        assert "MIT" in first or "Apache-2.0" in first


def test_networks_that_ratios_were_fitted_to_and_those_that_validate() -> None:
    measured = {total.network for total in totals()}
    assert set(FITTED_NETWORKS) < measured
    assert {total.pass_ for total in totals()} == set(PASSES)


def test_fit_reproduces_the_shipped_calibrations() -> None:
    for name, text in fitted_files().items():
        assert (DATA_FOLDER / "fitted" / name).read_text(encoding="utf-8") == text, name


@pytest.mark.parametrize("key", WITH_TARGET)
def test_held_out_shapes_are_within_15_percent(key: tuple[str, str]) -> None:
    """Only GPUs with a target are tested; docs/validation/layer-times.md has all."""
    outside = [timing for timing in held_out()[key]["validation"] if timing.kind == "conv"]
    assert median_error(errors(shipped_model(key), outside)) <= 0.15


def test_median_interval_samples_shapes_with_all_their_timings() -> None:
    timings = [timing for timing in PARTS["validation"]["p100", "cudnn5"] if timing.kind == "conv"]
    relative_errors = errors(shipped_model(("p100", "cudnn5")), timings)
    low, high = median_interval(timings, relative_errors)
    assert 0 < low < median_error(relative_errors) < high < 0.5
    assert median_interval(timings, relative_errors) == (low, high)
    assert median_interval(timings, [-0.1] * len(timings)) == (0.1, 0.1)
    apart = [replace(timing, in_channels=number + 1) for number, timing in enumerate(timings)]
    alone = median_interval(apart, relative_errors)
    assert alone[1] - alone[0] < high - low  # as if every timing were independent of the others


def test_held_out_networks_are_within_tolerance() -> None:
    """VGG and ResNets on three GPUs were measured by others with cuDNN 4 and 5.0."""
    older = [one for one in independent_networks() if one.machine != "k40" and not one.version.startswith("5.1")]
    assert len(older) == 21
    assert median_error([one.forward_error for one in older]) < 0.06
    assert median_error([one.backward_error for one in older]) < 0.12


def test_iterations_measured_elsewhere() -> None:
    """CONV networks: calibrated GPUs and the 2080 Ti in FP32 agree within 22 %, their medians within 12 %."""
    iterations = list(outside_iterations())
    close = ("gtx-1080-ti", "titan-xp", "p100", "rtx-2080-ti", "v100")
    assert {one.machine for one in iterations} == {*close, "k40", "a100-40", "a100-80", "h100-sxm"}
    assert all(0.4 < one.ratio < 1.4 for one in iterations)
    single = [one for one in iterations if one.precision == "fp32" and not one.network.startswith("bert")]
    for machine in close:
        ratios = [one.ratio for one in single if one.machine == machine]
        assert ratios == pytest.approx([1] * len(ratios), abs=0.22), machine
        assert median(ratios) == pytest.approx(1, abs=0.12), machine
    automatic = [one for one in iterations if one.precision != "fp32" and one.by != "u39kun"]
    ratios = [one.ratio for one in automatic if not one.network.startswith("bert")]
    assert (len(ratios), median(ratios)) == (10, pytest.approx(1, abs=0.08))
    assert ratios == pytest.approx([1] * len(ratios), abs=0.23)


def test_a_gpu_with_timings_is_not_called_uncalibrated() -> None:
    for machine in ("a100-40", "a100-80", "a40", "b200", "h100-sxm", "h200", "l4", "l40s", "p100", "t4", "v100"):
        for precision in ("fp32", "tf32", "fp16", "bf16"):
            if precision == "fp32" or getattr(TrainingMachine.load(machine).training, precision) is not None:
                source = CostModel.load(machine, precision=precision).source
                assert "uncalibrated" not in source, (machine, precision)


def made_timings(model: CostModel, seed: int) -> list[MeasuredPass]:
    """Return timings that a known model predicts, with one per cent of noise."""
    source = random.Random(seed)
    timings = [timing for timing in PARTS["calibration"]["m40", "cudnn5"] if timing.kind in ("conv", "fc")]
    return [
        replace(timing, ms=predicted_ms(model, timing) * source.uniform(0.99, 1.01), algorithm="") for timing in timings
    ]


def test_fit_recovers_known_efficiencies() -> None:
    machine = TrainingMachine.load("m40")
    truth = shipped()["m40", "cudnn5"]
    model = CostModel(machine, "cudnn5", truth, common())
    data = Dataset("m40", "cudnn5", PeakRates.of(machine), tuple(made_timings(model, 1)))
    calibration = fit_calibration(data, common())
    again = CostModel(machine, "cudnn5", calibration, common())
    assert median_error(errors(again, filter(of_kind("conv"), data.timings))) < 0.03
    for pass_ in PASSES:
        assert calibration.efficiency[pass_]["1x1"] == pytest.approx(truth.efficiency[pass_]["1x1"], rel=0.1)


def test_fit_recovers_a_known_curve() -> None:
    """A fit to timings made with the bundled curve predicts them as well as that curve."""
    machine = TrainingMachine.load("m40")
    model = CostModel(machine, "cudnn5", shipped()["m40", "cudnn5"], common())
    data = Dataset("m40", "cudnn5", PeakRates.of(machine), tuple(made_timings(model, 2)))
    rows = [row for row in data.measured("forward") if row.group not in ("3x3", "3x3-wide")]
    shipped_curve = common().curves["forward"]
    assert fit_curve(rows, start=shipped_curve) is not None
    curve = fit_curve(rows)
    off = [curve.compute_s(row.product, row.peak) / shipped_curve.compute_s(row.product, row.peak) for row in rows]
    assert max(off) / min(off) < 1.5


def test_groups_without_timings_come_from_other_gpus() -> None:
    machine = TrainingMachine.load("a100-40")
    pointwise = [timing for timing in PARTS["calibration"]["v100", "cudnn7"] if timing.group == "1x1"]
    faster = tuple(replace(timing, ms=timing.ms / 2) for timing in pointwise)
    calibration = fit_calibration(Dataset("a100-40", "cudnn7", PeakRates.of(machine), faster), common())
    assert calibration.measured["forward"]["1x1"] > 0
    assert calibration.measured["forward"]["large"] == 0
    assert set(calibration.efficiency["forward"]) == set(GROUPS)
    model = CostModel.load(machine, calibration=calibration)
    assert model.calibrated
    assert "forward large" in model.assumptions["groups"]


@pytest.mark.parametrize("key", sorted(shipped()))
def test_files_round_trip(key: tuple[str, str]) -> None:
    calibration = shipped()[key]
    assert parse_calibration(calibration.to_toml(), "back") == calibration


def test_versions() -> None:
    assert [version_of(name) for name in ("cudnn4", "cudnn10", "generic", "cudnn", "4", "cudnnx")] == [
        4, 10, None, None, None, None,
    ]  # fmt: skip


def content(before: str, after: str) -> str:
    calibration = Calibration("m40", "cudnn5", common().efficiency)
    text = calibration.to_toml()
    assert before in text
    return text.replace(before, after, 1)


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("format = 1", "format = 2", "format: expected 1, got 2"),
        ("format = 1", "fromat = 1", "format is missing"),
        (
            "[efficiency.forward]",
            "[efficiency.foward]",
            r"efficiency.foward: expected one of .* \(nearest: forward\)",
        ),
        ('machine = "m40"', "machine = 3", "machine: expected a text, got 3"),
        ("1x1 = ", "1x1 = 99 #", "efficiency.forward.1x1: expected at most 10, got 99"),
        ("1x1 = ", '1x1 = "a" #', "efficiency.forward.1x1: expected a number, got 'a'"),
        ("1x1 = ", "1x1 = nan #", "not valid TOML: nan where a finite number is expected"),
        ("1x1 = ", "#1x1 = ", "efficiency.forward.1x1: this key is missing"),
        ("1x1 = ", "2x2 = ", r"efficiency.forward.2x2: expected one of"),
        ("limited_workspace = false", "limited_workspace = 3", "limited_workspace: expected true or false, got 3"),
        ("source = []", "source = [1]", r"source\[0\]: expected a text, got 1"),
        ("source = []", "source = ", "not valid TOML"),
        ("source = []", "source = []\nmeasured = 3", "measured: expected a table of names and values, got 3"),
        (
            "source = []",
            "source = []\nmeasured.forward = 3",
            "measured.forward: expected a table of",
        ),
        ("source = []", "source = []\nmeasured.forward.1x1 = -1", "measured.forward.1x1: expected at least 0, got -1"),
    ],
)
def test_wrong_calibration_is_an_error(before: str, after: str, problem: str) -> None:
    with pytest.raises(BuddysimError, match=problem) as caught:
        parse_calibration(content(before, after), "mine.toml")
    assert str(caught.value).startswith("mine.toml: ")
    assert "\n" not in str(caught.value)
