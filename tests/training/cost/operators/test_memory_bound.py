"""Time of kernels that memory bounds, by hand, and the fast formula against the readable one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buddysim.machine.training import TrainingMachine
from buddysim.training.calibration import fast
from buddysim.training.calibration.evaluate import errors
from buddysim.training.cost.operators.constants import fitted_constants
from buddysim.training.cost.operators.figures import GpuFigures
from buddysim.training.cost.operators.memory_bound import MemoryConstants, memory_seconds
from buddysim.training.cost.operators.rows import read_rows

GPU = GpuFigures("by-hand", 10, 1e9, 1e12, 4e7, {"fp32": 1e13})
PLAIN = MemoryConstants(1e-3, {"elementwise": 0.8, "softmax": 0.4}, 20.0, 1.5)


def test_a_kernel_in_the_cache_is_faster_than_device_memory() -> None:
    """20 MB at 1.5 times 0.8 TB/s; 40 MB half in the cache; 80 MB, and softmax, from device memory."""
    assert memory_seconds(PLAIN, GPU, "elementwise", 2e7) == pytest.approx(2e7 / 1.2e12)
    assert memory_seconds(PLAIN, GPU, "elementwise", 4e7) == pytest.approx(4e7 / 1e12)
    assert memory_seconds(PLAIN, GPU, "elementwise", 8e7) == pytest.approx(8e7 / 0.8e12)
    assert memory_seconds(PLAIN, GPU, "softmax", 2e7) == pytest.approx(2e7 / 0.4e12)


@given(st.floats(1, 1e9), st.floats(1, 4), st.floats(1.2, 8))
def test_the_fast_formula_is_the_readable_one(moved: float, cached: float, sharpness: float) -> None:
    one = replace(PLAIN, cached=cached, sharpness=sharpness)
    named = {**vars(one), "bandwidth": 0.8}
    quick = fast.memory_seconds(named, GPU, np.array([moved]))
    assert quick[0] == pytest.approx(memory_seconds(one, GPU, "elementwise", moved), rel=1e-9)


def test_measured_kernels_that_move_more_than_device_memory_does_are_explained() -> None:
    """A third of the H100's element-wise kernels exceed its peak bandwidth, which only a cache explains."""
    gpu, fitted = GpuFigures.of(TrainingMachine.load("h100-sxm")), fitted_constants()
    rows = [row for row in read_rows("memory") if (row.gpu, row.name, row.source) == ("h100-sxm", "elementwise", "v")]
    assert sum(row.extents[0] / row.us * 1e6 > gpu.dram_bytes_per_s for row in rows) >= 8
    own = fitted["h100-sxm"]
    assert own.memory is not None
    uncached = {**fitted, "h100-sxm": replace(own, memory=replace(own.memory, cached=1.0))}
    away = [errors(gpu, "memory", rows, own, some) for some in (fitted, uncached)]
    medians = [float(np.median(abs(one))) for one in away if one is not None]
    assert medians[0] < 0.12
    assert medians[1] > 1.5 * medians[0]
