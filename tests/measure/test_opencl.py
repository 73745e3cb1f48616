"""OpenCL runs a model's operators on PoCL, end to end: right results, rows that `calibrate` takes, copies by size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from buddysim.cli import main
from buddysim.measure.copies import SIZES
from buddysim.measure.opencl_operators import OpenclOperators, open_opencl
from buddysim.measure.operators import memory_extents
from buddysim.training.cost.operators.constants import parse_constants
from buddysim.validation.curve.curve_data import load_curves

CONFIG = Path(__file__).parents[1] / "training" / "against" / "data" / "llama.json"
RANDOM = np.random.default_rng(0)

pytest.importorskip("pyopencl", reason="PyOpenCL isn't installed")


@pytest.fixture(scope="module")
def device() -> OpenclOperators:
    return open_opencl("by-hand")


def values(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize(("count", "m", "n", "k"), [(1, 1, 1, 1), (3, 17, 33, 5), (2, 16, 32, 40)])
def test_products_are_right(device: OpenclOperators, count: int, m: int, n: int, k: int) -> None:
    left, right = values(count, m, k), values(count, k, n)
    us, out = device.product(left, right)
    assert us > 0
    assert np.allclose(out, left @ right, atol=1e-4)


@pytest.mark.parametrize("row", [1, 63, 64, 200])
def test_kernels_that_memory_bounds_are_right(device: OpenclOperators, row: int) -> None:
    rows = values(5, row)
    assert np.allclose(device.memory("elementwise", rows, [])[1], rows + 1, atol=1e-6)
    norm = (rows - rows.mean(1, keepdims=True)) / np.sqrt(rows.var(1, keepdims=True) + 1e-5)
    assert np.allclose(device.memory("norm", rows, [])[1], norm, atol=1e-3)
    exponentials = np.exp(rows)
    assert np.allclose(device.memory("softmax", rows, [])[1], exponentials / exponentials.sum(1, keepdims=True))
    gradient = values(5, row)
    backward = gradient - gradient.mean(1, keepdims=True) - norm * (gradient * norm).mean(1, keepdims=True)
    assert np.allclose(device.memory("norm_backward", gradient, [norm])[1], backward, atol=1e-3)
    order = np.array([3, 0, 4, 4, 1], np.int32)
    assert np.array_equal(device.memory("gather", rows, [order])[1], rows[order])


def test_operands_have_the_bytes_that_the_model_moves() -> None:
    assert memory_extents(("elementwise", 8 * 100 * 7, 7)) == (100, 7)  # read and written, 4 bytes each
    assert memory_extents(("norm_backward", 12 * 100 * 7, 7)) == (100, 7)  # two read, one written
    assert memory_extents(("gather", 4, 0)) == (1, 1)


def test_more_work_takes_longer(device: OpenclOperators) -> None:
    for kind in ("elementwise", "norm", "norm_backward", "softmax", "long_softmax", "gather"):
        assert device.memory_us((kind, 2**21, 256)) > 2 * device.memory_us((kind, 2**15, 256))
    assert device.product_us(("fp32", 1, 256, 128, 64)) > 2 * device.product_us(("bf16", 1, 32, 64, 64))
    assert device.copy_us(True, 2**24) > device.copy_us(True, 2**14)
    assert device.launch_us("compiled", 50) > 0


def test_measured_rows_go_into_a_calibration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    model = ["--model", str(CONFIG), "--batch", "1", "--sequence", "8"]
    assert main(["machines", "measure", *model, "--opencl", "--like", "a-cpu", "-o", str(out)]) == 0
    assert sorted(path.name for path in out.iterdir()) == [
        "gpu_curves.csv", "launches.csv", "memory.csv", "products.csv"
    ]  # fmt: skip
    files = [out / f"{name}.csv" for name in ("products", "memory", "launches")]
    assert all("kernels of buddysim, no vendor's library" in path.read_text().splitlines()[0] for path in files)
    copies = {curve.benchmark: curve for curve in load_curves(out / "gpu_curves.csv")}
    assert {len(curve.y) for curve in copies.values()} == {len(SIZES)}
    assert set(copies) == {"copy_to_host", "copy_to_device"}
    fitted = tmp_path / "fitted.toml"
    assert main(["calibrate", *map(str, files), "--machine", "l4", "-o", str(fitted)]) == 0
    constants = parse_constants(fitted.read_text(), "fitted.toml")
    measured = float(files[2].read_text().split(",")[-1])
    assert constants.launch_us == {"compiled": pytest.approx(measured, rel=1e-3)}
    assert set(constants.products) == {"fp32"}
    assert constants.memory is not None
    assert "products" in capsys.readouterr().out


def test_what_opencl_does_not_measure(capsys: pytest.CaptureFixture[str], device: OpenclOperators) -> None:
    assert main(["machines", "measure", "--opencl"]) == 2
    assert "expected --model" in capsys.readouterr().err
    assert main(["machines", "l4", "--opencl"]) == 2
    assert "no measurement" in capsys.readouterr().err
    huge = 2**40
    with pytest.raises(Exception, match="expected a smaller --batch"):
        device.copy_us(True, huge)
