"""Time of fused attention, computed by hand, and the fast formula against the readable one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buddysim.training.cost.operators.attention import AttentionConstants, attention_seconds, fraction_of
from buddysim.training.cost.operators.figures import GpuFigures
from buddysim.training.cost.operators.fitting import fast
from buddysim.training.networks.recorded.work import AttentionWork

GPU = GpuFigures("by-hand", 10, 1e9, 1e12, 1.0, {"bf16": 1e13})
PLAIN = AttentionConstants(1.0, {64: 0.5, 128: 1.0}, 0.0, 0.0, 1.0, 50.0)
WORK = AttentionWork(1, 1024, 1024, 20, 20, 128)


def test_causal_attention_by_hand() -> None:
    """20 heads on 10 multiprocessors, two each: 4 x 128 FLOPs for 1024 x 1152 / 2 pairs at 1 TFLOP/s."""
    assert attention_seconds(PLAIN, GPU, WORK, "bf16") == pytest.approx(2 * 512 * 1024 * 1152 / 2 / 1e12 + 1e-6)


def test_without_causality_all_pairs_count() -> None:
    everything = replace_work(causal=False)
    assert attention_seconds(PLAIN, GPU, everything, "bf16") == pytest.approx(2 * 512 * 1024**2 / 1e12 + 1e-6)


def test_a_window_leaves_fewer_pairs() -> None:
    """Of 1024 queries with 128 keys each: 128 x 1024 - 128^2 / 2 pairs and half a block for each query."""
    pairs = 128 * 1024 - 128**2 / 2 + 1024 * 64
    windowed = replace_work(window=128)
    assert attention_seconds(PLAIN, GPU, windowed, "bf16") == pytest.approx(2 * 512 * pairs / 1e12 + 1e-6)


def test_the_backward_kernel_does_five_products_for_two() -> None:
    forward = attention_seconds(PLAIN, GPU, WORK, "bf16") - 1e-6
    assert attention_seconds(PLAIN, GPU, WORK, "bf16", 0.5) - 1e-6 == pytest.approx(5 * forward)


def test_one_head_takes_its_longest_block() -> None:
    """One head has eight blocks for ten multiprocessors: the longest sees 1024 keys."""
    single = replace_work(heads=1, kv_heads=1)
    assert attention_seconds(PLAIN, GPU, single, "bf16") == pytest.approx(512 * 128 * 1024 / 1e12 + 1e-6)


def test_sizes_of_head_between_the_measured_ones() -> None:
    assert fraction_of(PLAIN, 96) == pytest.approx(0.75)
    assert fraction_of(PLAIN, 256) == 1.0
    assert fraction_of(PLAIN, 16) == pytest.approx(0.25)


def replace_work(**changed: object) -> AttentionWork:
    """The work of these tests with some fields changed."""
    return WORK._replace(**changed)  # type: ignore[arg-type]


@given(
    st.integers(1, 32), st.integers(1, 16384), st.sampled_from([(8, 8), (32, 8), (5, 1)]),
    st.sampled_from([64, 128]), st.sampled_from([0, 128, 1024]), st.sampled_from([0.0, 0.8]),
)  # fmt: skip
def test_the_fast_formula_is_the_readable_one(
    batch: int, tokens: int, heads: tuple[int, int], size: int, window: int, backward: float
) -> None:
    one = AttentionConstants(3.0, {64: 0.5, 128: 0.6}, 0.7, 0.4, 0.5, 1.5)
    work = AttentionWork(batch, tokens, tokens, *heads, size, True, window)
    named = {"floor_us": 3.0, "peak_fraction": one.peak_fraction[size], "block_us": 0.7, "wave": 0.4,
             "bandwidth": 0.5, "sharpness": 1.5}  # fmt: skip
    row = np.array([[batch, tokens, *heads, size, window]], dtype=float)
    quick = fast.attention_seconds(named, replace(GPU), "bf16", row, backward)
    assert quick[0] == pytest.approx(attention_seconds(one, GPU, work, "bf16", backward), rel=1e-9)
