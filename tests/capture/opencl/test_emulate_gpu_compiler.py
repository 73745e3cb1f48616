"""``--emulate-gpu-compiler`` keeps memory contents, removes instructions, and moves loads ahead of their uses."""

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
    """Return kinds, use distances, instructions and the last snapshot, without and with the option."""
    results = []
    for name, options in (("written.bin", ()), ("gpu.bin", ("--emulate-gpu-compiler",))):
        output, done = captured(job, folder, *options, name=name)
        assert done.returncode == 0, done.stderr
        with open_trace(output) as trace:
            ops = np.concatenate([trace.decode_chunk(ref).ops for ref in trace.kernels[0].chunks])
            memory = [trace.snapshots[-1].read(one.index)[1].tobytes() for one in trace.allocations]
            results.append((ops["kind"], ops["use_distance"], trace.kernels[0].warp_instructions, memory))
    return results


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


def counted_trace(source: str, folder: Path, *options: str) -> Path:
    """Return the trace of one warp of a kernel."""
    job = {"source": source, "buffers": [{"bytes": 4 * 4096, "fill": "random32", "seed": 1}, {"bytes": 4 * 4096}]}
    job["launches"] = [{"kernel": "k", "global": [32], "local": [32], "arguments": [{"buffer": 0}, {"buffer": 1}]}]
    output, done = captured(job, folder, *options)
    assert done.returncode == 0, done.stderr
    return output


def counted(source: str, folder: Path, *options: str) -> tuple[int, int]:
    """Return the instructions of one warp of a kernel, and its unit-busy slots before the last operation."""
    with open_trace(counted_trace(source, folder, *options)) as trace:
        ops = np.concatenate([trace.decode_chunk(ref).ops for ref in trace.kernels[0].chunks])
        return trace.kernels[0].warp_instructions, int(ops["unit_busy_slots"][-1])


def kernel(statements: str) -> str:
    return f"__kernel void k(__global const float *a, __global float *b) {{ int i = get_global_id(0); {statements} }}"


def test_products_are_summed_in_one_instruction(tmp_path: Path) -> None:
    one = counted(kernel("b[i] = a[i] * a[i + 64];"), tmp_path, "--emulate-gpu-compiler")
    both = counted(kernel("b[i] = a[i] * a[i + 64] + a[i];"), tmp_path, "--emulate-gpu-compiler")
    assert one[0] == both[0]


def test_offsets_in_unrolled_loops_are_part_of_the_access(tmp_path: Path) -> None:
    # Each further round has a load, an addition and a store; no arithmetic for its address.
    rounds = "for (int k = 0; k < {}; k++) b[i] += a[(k << 6) + i];"
    four, eight = (counted(kernel(rounds.format(n)), tmp_path, "--emulate-gpu-compiler")[0] for n in (4, 8))
    assert eight - four == 4 * 3


def test_code_has_every_instruction_once(tmp_path: Path) -> None:
    """A warp executes a kernel without branches once, and a loop of unknown length many times."""
    instructions, code = size_of_code(kernel("b[i] = a[i] * a[i + 64];"), tmp_path, "--emulate-gpu-compiler")
    assert code == 16 * instructions
    loop = "float x = 0; for (int k = 0; k < 8 * get_global_size(0); k++) x = x * a[k] + 1; b[i] = x;"
    repeated, code = size_of_code(kernel(loop), tmp_path, "--emulate-gpu-compiler")
    assert 16 * repeated > 5 * code > 0
    assert size_of_code(kernel(loop), tmp_path)[1] == 0


def size_of_code(source: str, folder: Path, *options: str) -> tuple[int, int]:
    """Return the instructions of one warp of a kernel, and the bytes of its code."""
    instructions, _ = counted(source, folder, *options)
    with open_trace(folder / "out.bin") as trace:
        return instructions, trace.kernels[0].code_bytes


def test_units_of_sm_70_stay_busy(tmp_path: Path) -> None:
    # 64 dependent multiply-adds keep the single-precision unit for two cycles each; what else there is, is few.
    many = "float x = a[i]; for (int k = 0; k < 64; k++) x = x * x + 0.5f; b[i] = x;"
    instructions, slots = counted(kernel(many), tmp_path, "--emulate-gpu-compiler")
    assert 2 * 64 - instructions <= slots < 64
    assert counted(kernel(many), tmp_path)[1] == 0


def tail_of(statements: str, folder: Path) -> tuple[int, int]:
    """Return the instructions and unit-busy slots of a warp after its last operation."""
    output = counted_trace(kernel(statements), folder, "--emulate-gpu-compiler")
    with open_trace(output) as trace:
        (warp,) = trace.decode_chunk(trace.kernels[0].chunks[0]).warps
        return int(warp["tail_gap_instructions"]), int(warp["tail_unit_busy_slots"])


def test_tail_keeps_units_busy(tmp_path: Path) -> None:
    """EXIT ends a kernel and takes a cycle of the integer unit; arithmetic after the last load is in the tail."""
    assert tail_of("b[i] = a[i];", tmp_path) == (1, 0)
    many = "float x = a[i]; for (int k = 0; k < 64; k++) x = x * x + 0.5f; if (x == 0.25f) b[i] = x;"
    instructions, slots = tail_of(many, tmp_path)
    assert 64 < instructions < 80
    assert slots == 2 * 64 - instructions


LOCAL = """
__kernel void k(__global const float *a, __global float *b, __local float *s) {{
    int i = get_local_id(0);
    s[i] = a[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int m = 0; m < {}; m++) {{
        if (i <= m) s[({} - i + m) * 5 + i] += s[({} - i + m) * 3 + i];
        barrier(CLK_LOCAL_MEM_FENCE);
    }}
    b[i] = s[i];
}}
"""


def in_local_memory(rounds: int, folder: Path, *options: str) -> tuple[int, bytes]:
    """Return the instructions of a warp of `LOCAL`, and its results in memory."""
    job = {"source": LOCAL.format(rounds, 64, 96), "buffers": [{"bytes": 128, "fill": "random32", "seed": 1}]}
    job["buffers"].append({"bytes": 128})
    arguments = [{"buffer": 0}, {"buffer": 1}, {"local": 4096}]
    job["launches"] = [{"kernel": "k", "global": [32], "local": [32], "arguments": arguments}]
    output, done = captured(job, folder, *options)
    assert done.returncode == 0, done.stderr
    with open_trace(output) as trace:
        return trace.kernels[0].warp_instructions, trace.snapshots[-1].read(1)[1].tobytes()


def test_addresses_in_local_memory_differ_by_their_offsets(tmp_path: Path) -> None:
    """An iteration adds a comparison, branch, two loads, sum, store, barrier and NOP; addresses cost nothing."""
    four, eight = (in_local_memory(n, tmp_path, "--emulate-gpu-compiler")[0] for n in (4, 8))
    assert eight - four == 4 * (1 + 1 + 2 + 1 + 1 + 2)


def test_memory_is_the_same_where_local_addresses_are_taken_apart(tmp_path: Path) -> None:
    assert in_local_memory(8, tmp_path)[1] == in_local_memory(8, tmp_path, "--emulate-gpu-compiler")[1]


def test_a_maximum_is_a_comparison_and_a_selection(tmp_path: Path) -> None:
    sum_, largest = (
        counted(kernel(f"int x = (int)a[i], y = (int)a[i + 64]; b[i] = {form};"), tmp_path, "--emulate-gpu-compiler")[0]
        for form in ("x + y", "x > y ? x : y")
    )
    assert largest == sum_ + 1
