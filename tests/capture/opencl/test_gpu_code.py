"""``capture opencl --gpu-code``: the same memory in the end, fewer instructions, loads ahead of their uses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from buddysim.trace import OP_LOAD, open_trace
from tests.capture.opencl.kernels import JOBS
from tests.capture.opencl.running import captured, needs_opencl

SUM = """
__kernel void sum(__global const uint *a, __global uint *b) {
    uint total = 0;
    for (int k = 0; k < 8; k++) total += a[get_global_id(0) + 32 * k];
    b[get_global_id(0)] = total;
}
"""


@pytest.fixture(autouse=True)
def opencl() -> None:
    needs_opencl()


def both(job: Any, folder: Path) -> list[tuple[Any, Any, int, list[bytes]]]:
    """Kinds, distances to first uses, instructions and the last snapshot: as written, and as for a GPU."""
    found = []
    for name, options in (("written.bin", ()), ("gpu.bin", ("--gpu-code",))):
        output, done = captured(job, folder, *options, name=name)
        assert done.returncode == 0, done.stderr
        with open_trace(output) as trace:
            ops = np.concatenate([trace.decode_chunk(ref).ops for ref in trace.kernels[0].chunks])
            memory = [trace.snapshots[-1].read(one.index)[1].tobytes() for one in trace.allocations]
            found.append((ops["kind"], ops["use_distance"], trace.kernels[0].warp_instructions, memory))
    return found


@pytest.mark.parametrize("name", ["barriers_in_loops", "histogram"])
def test_memory_is_the_same_in_the_end(name: str, tmp_path: Path) -> None:
    written, gpu = both(JOBS[name], tmp_path)
    assert written[3] == gpu[3]
    assert np.array_equal(np.bincount(written[0]), np.bincount(gpu[0]))


def test_loops_are_unrolled_and_loads_come_first(tmp_path: Path) -> None:
    job = {"source": SUM, "buffers": [{"bytes": 4 * 256, "fill": "random32", "seed": 1}, {"bytes": 128}]}
    job["launches"] = [{"kernel": "sum", "global": [32], "local": [32], "arguments": [{"buffer": 0}, {"buffer": 1}]}]
    written, gpu = both(job, tmp_path)
    assert written[3] == gpu[3]
    assert gpu[2] < 0.6 * written[2]
    first_use = [int(distances[kinds == OP_LOAD][0]) for kinds, distances, _, _ in (written, gpu)]
    assert first_use[0] < 8 <= first_use[1]  # behind the other seven loads
