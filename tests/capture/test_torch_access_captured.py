"""Access models of products and convolutions against real tiled OpenCL kernels of the same shapes, captured."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from buddysim.capture.torch.access.convolution import Convolution
from buddysim.capture.torch.access.launch import ModelledKernel, write_launch
from buddysim.capture.torch.access.matmul import matmul
from buddysim.capture.torch.access.tensors import TensorView
from buddysim.cli import main
from buddysim.replay import simulate
from buddysim.trace import Provenance, TraceWriter, open_trace
from tests.capture.opencl.running import needs_opencl

PROGRAM = Path(__file__).with_name("tiled_products.py")
WITHIN = 0.10


def modelled(name: str, sizes: tuple[int, ...], bases: list[int]) -> ModelledKernel:
    if name == "gemm":
        m, n, k = sizes
        left, right, out = views(bases, (m, k), (k, n), (m, n))
        return matmul("sgemm", left, right, out)
    images, channels, edge, filters = sizes
    shapes = (images, channels, edge, edge), (filters, channels, 3, 3), (images, filters, edge, edge)
    return Convolution(*views(bases, *shapes), (1, 1), (1, 1), (1, 1)).forward()


def views(bases: list[int], *shapes: tuple[int, ...]) -> list[TensorView]:
    strides = [tuple(int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))) for shape in shapes]
    return [TensorView(base, shape, stride) for base, shape, stride in zip(bases, shapes, strides, strict=True)]


def sectors(path: Path) -> dict[str, int]:
    """Return the sectors that reach the L1, the L2 and device memory."""
    counters = simulate(path, "v100", "ideal").counters
    memory = (counters["device.read_bytes"] + counters["device.write_bytes"]) // 32 + counters[
        "l2.dirty_sectors_at_end"
    ]
    return {"L1": counters["l1.sector_accesses"], "L2": counters["l2.sector_accesses"], "DRAM": memory}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("gemm", (2048, 512, 1024)),
        ("gemm", (640, 1152, 256)),
        ("convolution", (32, 64, 16, 128)),
        ("convolution", (12, 32, 16, 256)),
    ],
)
def test_sectors_are_those_of_a_captured_kernel(name: str, sizes: tuple[int, ...], tmp_path: Path) -> None:
    pytest.importorskip("pyopencl")
    needs_opencl()
    captured, real, model = (tmp_path / file for file in ("captured.bin", "real.bin", "model.bin"))
    assert main(["capture", "opencl", "-o", str(captured), sys.executable, str(PROGRAM), name, *map(str, sizes)]) == 0
    with open_trace(captured) as trace:
        (kernel,) = trace.kernels
        for path in (real, model):  # both without the program's copies, which would leave data in the L2
            with TraceWriter(path, Provenance("test")) as writer:
                for one in trace.allocations:
                    writer.add_allocation(one.name, one.base, one.bytes)
                if path == model:
                    launch = modelled(name, sizes, [one.base for one in trace.allocations])
                    assert launch.name.endswith("128x128x8")
                    write_launch(writer, launch, 0)
                    continue
                writer.begin_kernel(kernel.name, kernel.grid, kernel.block)
                for chunk in map(trace.decode_chunk, kernel.chunks):
                    writer.add_blocks(chunk.blocks, chunk.warps, chunk.ops, chunk.lines)
                writer.end_kernel()
    model_sectors, captured_sectors = sectors(model), sectors(real)
    for level, count in captured_sectors.items():
        assert abs(model_sectors[level] / count - 1) <= WITHIN, (level, model_sectors, captured_sectors)
