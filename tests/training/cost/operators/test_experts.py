"""Layers of experts as they were measured: bytes by hand, and what shipped rows need."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest

from buddysim.machine.training import TrainingMachine
from buddysim.training.calibration.evaluate import errors
from buddysim.training.calibration.experts import expert_extents, fit_experts, layer_seconds, moved_bytes
from buddysim.training.cost.operators.constants import ExpertConstants, fitted_constants, shared_constants
from buddysim.training.cost.operators.figures import GpuFigures
from buddysim.training.cost.operators.rows import MeasuredOperator, read_rows

GPU = GpuFigures.of(TrainingMachine.load("h100-sxm"))
PRODUCTS = fitted_constants()["h100-sxm"].products["bf16"]


def test_extents_and_bytes_by_hand() -> None:
    """64 tokens to 2 of 8 experts over 4 ranks: 32 pairs on 2 own experts, 16 rows each."""
    row = MeasuredOperator("h100-sxm", "triton", (64, 512, 256, 2, 8, 4), 90.0)
    assert expert_extents(row) == ((2, 16, 512, 512), (2, 16, 512, 256))
    assert moved_bytes(row) == 128 * 2 * (5 * 256 + 2 * 512)
    ungated = MeasuredOperator("h100-sxm", "triton", (64, 2688, 1856, 2, 8, 4), 90.0)
    assert expert_extents(ungated)[0] == (2, 16, 1856, 2688)
    assert moved_bytes(ungated) == 128 * 2 * (3 * 1856 + 2 * 2688)
    other = MeasuredOperator("b200", "cutlass", row.extents, 90.0)
    assert moved_bytes(other) == 32 * 2 * (5 * 256 + 2 * 512) + 64 * 2 * 2 * 512


def test_a_fit_finds_the_constants_of_the_model() -> None:
    shapes = [(tokens, 4096, 1536, 8, 128, ranks) for tokens in (16, 512, 8192) for ranks in (1, 4, 16)]
    known = ExpertConstants(1.2, 1.1, 1.3, 25.0)
    rows = [MeasuredOperator("h100-sxm", "triton", shape, 1.0) for shape in shapes]
    seconds = layer_seconds(known, GPU, PRODUCTS, 0.8, rows)
    timed = [MeasuredOperator("h100-sxm", "triton", shape, us) for shape, us in zip(shapes, 1e6 * seconds, strict=True)]
    result = fit_experts(GPU, PRODUCTS, 0.8, timed)
    assert asdict(result) == pytest.approx(asdict(known), rel=0.05)


def test_pairs_of_other_ranks_explain_the_measured_layers() -> None:
    """Without their bytes, a rank of 128 takes half of the measured time."""
    rows = [row for row in read_rows("experts") if row.gpu == "h100-sxm" and row.checks]
    fitted = fitted_constants()
    away = errors(GPU, "experts", rows, fitted["h100-sxm"], fitted)
    assert away is not None
    assert np.median(abs(away)) < 0.08
    spread = [row for row in rows if row.extents[5] >= 64]
    constants = fitted["h100-sxm"]
    fraction = shared_constants().memory_bandwidth["elementwise"]
    own = [MeasuredOperator(row.gpu, "cutlass", row.extents, row.us) for row in spread]
    without = (
        layer_seconds(constants.experts["triton"], GPU, PRODUCTS, fraction, own)
        * 1e6
        / np.array([row.us for row in own])
    )
    assert np.median(without) < 0.7
