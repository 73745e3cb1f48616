"""Time of fused attention, computed by hand, and the fast formula against the readable one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buddysim.training.calibration import fast
from buddysim.training.cost.operators.attention import BLOCKS, AttentionConstants, attention_seconds, fraction_of
from buddysim.training.cost.operators.figures import GpuFigures
from buddysim.training.networks.recorded.work import AttentionWork

GPU = GpuFigures("by-hand", 10, 1e9, 1e12, 1.0, {"bf16": 1e13})
PLAIN = AttentionConstants("flash", 1.0, {64: 0.5, 128: 1.0}, 0.0, 0.0, 1e9, 50.0)
WORK = AttentionWork(1, 1024, 1024, 20, 20, 128)
BLOCK_FLOPS = 4 * 128 * 128  # of a block of 128 queries with one key


def test_causal_attention_by_hand() -> None:
    """20 heads of 8 blocks on 10 multiprocessors, 16 each: half of 1024 keys, of 128 queries and of 64 keys a block."""
    spent = 16 * BLOCK_FLOPS * (1024 + 128 + 64) / 2 / 1e12
    assert attention_seconds(PLAIN, GPU, WORK, "bf16") == pytest.approx(spent + 1e-6)


def test_without_causality_all_pairs_count() -> None:
    everything = replace_work(causal=False)
    assert attention_seconds(PLAIN, GPU, everything, "bf16") == pytest.approx(16 * BLOCK_FLOPS * 1024 / 1e12 + 1e-6)


def test_a_window_leaves_fewer_keys() -> None:
    """128 keys, fewer for the first 128 queries; half a block of queries, half a block of keys on both sides."""
    keys = 128 - 128**2 / 2048 + 64 + 64
    windowed = replace_work(window=128)
    assert attention_seconds(PLAIN, GPU, windowed, "bf16") == pytest.approx(16 * BLOCK_FLOPS * keys / 1e12 + 1e-6)


def test_a_short_sequence_takes_whole_blocks() -> None:
    """One query of each of 20 heads: 20 blocks of 128 queries and 64 keys, two on each multiprocessor."""
    one = replace_work(tokens=1, keys=1, causal=False)
    assert attention_seconds(PLAIN, GPU, one, "bf16") == pytest.approx(2 * BLOCK_FLOPS * 64 / 1e12 + 1e-6)


def test_version_three_packs_heads_with_the_same_keys() -> None:
    """32 queries of 20 heads with 5 heads of keys: 128 queries are one block, of five blocks in all."""
    short = replace_work(tokens=32, keys=32, kv_heads=5)
    longest = BLOCK_FLOPS * 128 / 1e12 + 1e-6
    assert attention_seconds(replace(PLAIN, kernel="flash3"), GPU, short, "bf16") == pytest.approx(longest)
    many = short._replace(batch=100)
    packed = 50 * BLOCK_FLOPS * (32 + 32 + 128) / 2 / 1e12
    assert attention_seconds(replace(PLAIN, kernel="flash3"), GPU, many, "bf16") == pytest.approx(packed + 1e-6)
    single = 200 * BLOCK_FLOPS * (32 + 128 + 64) / 2 / 1e12
    assert attention_seconds(PLAIN, GPU, many, "bf16") == pytest.approx(single + 1e-6)


def test_bytes_move_at_the_rate_of_the_multiprocessors_or_of_device_memory() -> None:
    """One query of each of 1,000 heads: 4 x 128 x 2 bytes a head at 10 x 1e9 x 0.1 byte/s, or at 0.8 of 1 TB/s."""
    one = AttentionWork(1000, 1, 1, 1, 1, 128)
    fast_gpu = replace(GPU, flops={"bf16": 1e20})
    slow = replace(PLAIN, sm_bytes=0.1)
    assert attention_seconds(slow, fast_gpu, one, "bf16") == pytest.approx(1000 * 1024 / 1e9 + 1e-6)
    assert attention_seconds(PLAIN, fast_gpu, one, "bf16") == pytest.approx(1000 * 1024 / 0.8e12 + 1e-6)


def test_the_backward_kernel_does_five_products_for_two() -> None:
    forward = attention_seconds(PLAIN, GPU, WORK, "bf16") - 1e-6
    assert attention_seconds(PLAIN, GPU, WORK, "bf16", 0.5) - 1e-6 == pytest.approx(5 * forward)


def test_one_head_takes_its_longest_block() -> None:
    """One head has eight blocks for ten multiprocessors: the longest sees 1024 keys."""
    single = replace_work(heads=1, kv_heads=1)
    assert attention_seconds(PLAIN, GPU, single, "bf16") == pytest.approx(BLOCK_FLOPS * 1024 / 1e12 + 1e-6)


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
    st.sampled_from(sorted(BLOCKS)),
)  # fmt: skip
def test_the_fast_formula_is_the_readable_one(
    batch: int, tokens: int, heads: tuple[int, int], size: int, window: int, backward: float, kernel: str
) -> None:
    one = AttentionConstants(kernel, 3.0, {64: 0.5, 128: 0.6}, 0.7, 0.4, 5.0, 1.5)
    work = AttentionWork(batch, tokens, tokens, *heads, size, True, window)
    named = {**vars(one), "peak_fraction": one.peak_fraction[size]}
    row = np.array([[batch, tokens, *heads, size, window]], dtype=float)
    quick = fast.attention_seconds(named, replace(GPU), "bf16", row, backward)
    assert quick[0] == pytest.approx(attention_seconds(one, GPU, work, "bf16", backward), rel=1e-9)
