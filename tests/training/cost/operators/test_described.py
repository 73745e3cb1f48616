"""Described layers by operators: by hand, and the mechanisms that measured iterations need."""

from __future__ import annotations

from dataclasses import replace

import pytest

from buddysim.training.cost.model import CostModel
from buddysim.training.cost.operators.attention import attention_seconds
from buddysim.training.cost.operators.products import product_seconds
from buddysim.training.cost.work import PASSES, ConvWork, MatmulWork
from buddysim.training.named_network import load_network
from buddysim.training.networks.graph import Gemm
from buddysim.training.networks.recorded.work import AttentionWork

PS = 1e12


def half(channels_last: bool = False) -> CostModel:
    return CostModel.load("a100-80", precision="fp16", channels_last=channels_last)


def test_moving_takes_the_bandwidth_fraction_of_this_gpu() -> None:
    """A gigabyte at 0.8114 of 2,039 GB/s; what reads elements again is slower by the given factor."""
    described = half().described
    assert described is not None
    fraction = described.operators.memory_constants.bandwidth["elementwise"]
    assert described.moving_s(1e9) == pytest.approx(1e9 / (2039e9 * fraction), rel=1e-3)
    assert described.moving_s(1e9, relative=0.5) == pytest.approx(2 * described.moving_s(1e9), rel=1e-3)


def test_products_are_those_of_recorded_models() -> None:
    model = half()
    constants = model.operators.product_constants("fp16")
    expected = product_seconds(constants, model.operators.gpu, "fp16", (3, 1000, 512, 64), sustained=True)
    assert model.product_ps(MatmulWork(1000, 512, 64, 3), "forward") == round(expected * PS)


def test_fused_attention_takes_its_blocks() -> None:
    described = half().described
    assert described is not None
    scores = Gemm(m=1024, n=1024, k=64, count=12, per_sample=True, weights=False)
    work = AttentionWork(8, 1024, 1024, 12, 12, 64, causal=False)
    operators = described.operators
    expected = attention_seconds(operators.attention_constants("flash"), operators.gpu, work, "fp16")
    assert described.attention_s(scores, 8, backward=False) == expected
    assert described.attention_s(scores, 8, backward=True) > 2 * expected


def test_conv_with_channels_first_copies_what_a_pass_moves() -> None:
    """Each pass of a CONV reads and writes its feature maps and filters once more, two bytes an element."""
    layer = next(layer for layer in load_network("resnet50").layers if layer.conv is not None)
    assert layer.conv is not None
    first, last = half(), half(channels_last=True)
    work = ConvWork(layer.conv, 64)
    assert first.described is not None
    for pass_ in PASSES:
        spent = [model.conv_algorithms(layer, 64, pass_)[0].time_ps for model in (first, last)]
        copies = first.described.moving_s(2 * work.bytes / 2)
        assert spent[0] - spent[1] == pytest.approx(copies * PS, abs=2)


def test_fp32_of_gpus_with_timings_of_conv_is_as_it_was() -> None:
    for machine in ("titan-x", "p100", "v100", "t4", "rtx-2080-ti", "k40"):
        assert CostModel.load(machine).described is None
    for machine in ("a100-80", "h100-sxm", "l4", "rtx-4090"):
        assert CostModel.load(machine).described is not None


def test_single_precision_copies_no_layouts() -> None:
    model = CostModel.load("a100-80")
    assert model.described is not None
    layer = next(layer for layer in load_network("resnet50").layers if layer.conv is not None)
    before = model.conv_algorithms(layer, 64, "forward")[0].time_ps
    other = CostModel.load("a100-80", channels_last=True)
    assert other.conv_algorithms(layer, 64, "forward")[0].time_ps == before
    assert replace(model.described, channels_last=True).layout_s(1e9) == 0.0
