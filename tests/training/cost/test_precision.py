"""Precisions: rates and bytes by hand, available algorithms, and memory of an iteration."""

from __future__ import annotations

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.machine import TrainingMachine
from buddysim.training import simulate
from buddysim.training.cost import PASSES, CostModel
from buddysim.training.cost.precision import PRECISIONS
from buddysim.training.cost.work import MatmulWork
from buddysim.training.named_network import load_network

LARGE = MatmulWork(1 << 17, 1 << 14, 1 << 14)


@pytest.mark.parametrize(("precision", "tflops"), [("tf32", 156), ("fp16", 312), ("bf16", 312)])
def test_large_products_run_near_the_rate_of_tensor_cores(precision: str, tflops: float) -> None:
    model = CostModel.load("a100-80", precision=precision)
    fraction = LARGE.flops / (model.product_ps(LARGE, "forward") / 1e12) / (tflops * 1e12)
    assert 0.7 < fraction < 0.93


def test_layers_bound_by_memory_move_half_the_bytes_in_half_precision() -> None:
    relu = next(layer for layer in load_network("vgg16").layers if layer.kind == "relu")
    tf32, half = (CostModel.load("a100-40", precision=name) for name in ("tf32", "fp16"))
    assert half.dram_bytes(relu, 64, "forward") * 2 == tf32.dram_bytes(relu, 64, "forward")
    assert half.time_ps(relu, 64, "forward") == pytest.approx(tf32.time_ps(relu, 64, "forward") / 2, rel=0.01)


def test_no_pass_is_slower_on_tensor_cores() -> None:
    """Without copies between layouts: those of the widest feature maps take longer than they save."""
    precisions = ("fp32", "tf32", "fp16")
    single, tf32, half = (CostModel.load("a100-40", precision=name, channels_last=True) for name in precisions)
    for layer in load_network("resnet50").layers:
        if layer.conv is not None:
            for pass_ in PASSES:
                spent = [model.conv_algorithms(layer, 64, pass_)[0].time_ps for model in (single, tf32, half)]
                assert spent == sorted(spent, reverse=True)


def test_feature_maps_are_halves_and_weights_are_single() -> None:
    results = {name: simulate("vgg16", 16, "a100-40", "baseline-p", precision=name) for name in PRECISIONS}
    single, half = results["fp32"].counters, results["fp16"].counters
    assert half["memory.weights_bytes"] == single["memory.weights_bytes"]
    assert half["memory.weight_gradient_bytes"] == single["memory.weight_gradient_bytes"]
    assert half["memory.gradient_map_bytes"] * 2 == single["memory.gradient_map_bytes"]
    assert half["memory.feature_map_bytes"] < 0.52 * single["memory.feature_map_bytes"]
    assert results["tf32"].counters["memory.feature_map_bytes"] == single["memory.feature_map_bytes"]
    memory = {name: value for name, value in half.items() if name.startswith("memory.") and name.endswith("_bytes")}
    assert memory == {name: results["bf16"].counters[name] for name in memory}
    assert {name: result.provenance["precision"] for name, result in results.items()} == {n: n for n in PRECISIONS}
    assert "precision" in results["fp16"].provenance["assumptions"]
    assert "precision" not in results["fp32"].provenance["assumptions"]


def test_times_in_another_precision_come_from_a_gpu_that_has_them() -> None:
    assert CostModel.load("v100").calibrated
    half = CostModel.load("v100", precision="fp16")
    assert (half.calibrated, half.source) == (False, "predicted from a100-80")
    assert CostModel.load("a100-80", precision="fp16").source == "timings of its operators"


def test_precision_without_a_rate_is_an_error() -> None:
    with pytest.raises(BuddysimError, match="precision bf16: v100 has no rate for it: expected one of fp32, fp16"):
        CostModel.load("v100", precision="bf16")
    with pytest.raises(BuddysimError, match=r"precision 'fp61': expected one of .*\(nearest: fp16\)"):
        simulate("alexnet", 1, "a100-40", precision="fp61")
    cost = CostModel.load("a100-40", precision="tf32")
    with pytest.raises(BuddysimError, match="precision fp32: expected tf32, that of the layer times given"):
        simulate("alexnet", 1, "a100-40", cost=cost)


def test_precision_takes_the_machine_file_rate() -> None:
    machine = TrainingMachine.load("a100-40").with_overrides({"training.tf32": "78 TFLOPS"})
    slow, fast = CostModel.load(machine, precision="tf32"), CostModel.load("a100-40", precision="tf32")
    assert slow.product_ps(LARGE, "forward") == pytest.approx(2 * fast.product_ps(LARGE, "forward"), rel=1e-3)
