"""``--emulate-gpu-compiler`` keeps memory contents, removes instructions, and moves loads ahead of their uses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from buddysim.trace import OP_LOAD, Trace, open_trace
from tests.capture.opencl.kernels import JOBS
from tests.capture.opencl.running import captured, needs_opencl

MANY = "float x = a[i]; for (int k = 0; k < 64; k++) x = x * x + 0.5f;"
ROUNDS = "for (int k = 0; k < {}; k++) b[i] += a[(k << 6) + i];"
INTEGERS = "int x = (int)a[i], y = (int)a[i + 64]; b[i] = {};"
#: Statements of a kernel that has buffers `a` and `b`, and the index `i` of a work-item.
STATEMENTS = {
    "copy": "b[i] = a[i];",
    "product": "b[i] = a[i] * a[i + 64];",
    "product_and_sum": "b[i] = a[i] * a[i + 64] + a[i];",
    "four_rounds": ROUNDS.format(4),
    "eight_rounds": ROUNDS.format(8),
    "unknown_length": "float x = 0; for (int k = 0; k < 8 * get_global_size(0); k++) x = x * a[k] + 1; b[i] = x;",
    "many": f"{MANY} b[i] = x;",
    "many_at_the_end": f"{MANY} if (x == 0.25f) b[i] = x;",
    "sum_of_two": INTEGERS.format("x + y"),
    "larger_of_two": INTEGERS.format("x > y ? x : y"),
    "loads": "float total = 0; for (int k = 0; k < 8; k++) total += a[i + 32 * k]; b[i] = total;",
}
LOCAL = """
__kernel void local_{0}(__global const float *a, __global float *b, __local float *s) {{
    int i = get_local_id(0);
    s[i] = a[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int m = 0; m < {0}; m++) {{
        if (i <= m) s[(64 - i + m) * 5 + i] += s[(96 - i + m) * 3 + i];
        barrier(CLK_LOCAL_MEM_FENCE);
    }}
    b[i] = s[i];
}}
"""
#: By name, the further arguments of each kernel, all of which run in one program, a warp each.
KERNELS: dict[str, list[dict[str, int]]] = {
    **{name: [] for name in STATEMENTS},
    "local_4": [{"local": 4096}],
    "local_8": [{"local": 4096}],
}
WRITTEN, GPU = "as written", "as a GPU's compiler does"


def job() -> dict[str, Any]:
    """Return the program of all kernels; each writes a buffer of its own."""
    sources = [
        f"__kernel void {name}(__global const float *a, __global float *b) {{ int i = get_global_id(0); {statements} }}"
        for name, statements in STATEMENTS.items()
    ]
    launches = [
        {"kernel": name, "global": [32], "local": [32], "arguments": [{"buffer": 0}, {"buffer": number}, *more]}
        for number, (name, more) in enumerate(KERNELS.items(), 1)
    ]
    return {
        "source": "\n".join([*sources, LOCAL.format(4), LOCAL.format(8)]),
        "buffers": [{"bytes": 4 * 4096, "fill": "random32", "seed": 1}, *({"bytes": 4 * 4096} for _ in KERNELS)],
        "launches": launches,
    }


@pytest.fixture(autouse=True)
def opencl() -> None:
    needs_opencl()


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Trace]]:
    """Capture the program without and with the option."""
    needs_opencl()
    folder = tmp_path_factory.mktemp("kernels")
    of_program = {}
    for name, options in ((WRITTEN, ()), (GPU, ("--emulate-gpu-compiler",))):
        output, done = captured(job(), folder, *options, name=f"{len(options)}.bin")
        assert done.returncode == 0, done.stderr
        of_program[name] = open_trace(output)
    yield of_program
    for trace in of_program.values():
        trace.close()


def operations(trace: Trace, kernel: int) -> Any:
    return np.concatenate([trace.decode_chunk(ref).ops for ref in trace.kernels[kernel].chunks])


def counted(trace: Trace, name: str) -> tuple[int, int]:
    """Return the instructions of one warp of a kernel, and its unit-busy slots before the last operation."""
    number = [*KERNELS].index(name)
    return trace.kernels[number].warp_instructions, int(operations(trace, number)["unit_busy_slots"][-1])


def memory_of(trace: Trace, name: str) -> bytes:
    """Return what a kernel wrote."""
    contents: bytes = trace.snapshots[-1].read(1 + [*KERNELS].index(name))[1].tobytes()
    return contents


@pytest.mark.parametrize("name", ["barriers_in_loops", "histogram"])
def test_memory_is_the_same_in_the_end(name: str, tmp_path: Path) -> None:
    kinds, memory = [], []
    for file, options in (("written.bin", ()), ("gpu.bin", ("--emulate-gpu-compiler",))):
        output, done = captured(JOBS[name], tmp_path, *options, name=file)
        assert done.returncode == 0, done.stderr
        with open_trace(output) as trace:
            kinds.append(np.bincount(operations(trace, 0)["kind"]))
            memory.append([trace.snapshots[-1].read(one.index)[1].tobytes() for one in trace.allocations])
    assert memory[0] == memory[1]
    assert np.array_equal(*kinds)


def test_loops_are_unrolled_and_loads_come_first(traces: dict[str, Trace]) -> None:
    assert memory_of(traces[WRITTEN], "loads") == memory_of(traces[GPU], "loads")
    assert counted(traces[GPU], "loads")[0] < 0.6 * counted(traces[WRITTEN], "loads")[0]
    first_use = []
    for trace in traces.values():
        ops = operations(trace, [*KERNELS].index("loads"))
        first_use.append(int(ops["use_distance"][ops["kind"] == OP_LOAD][0]))
    assert first_use[0] < 8 <= first_use[1]  # behind the other seven loads


def test_products_are_summed_in_one_instruction(traces: dict[str, Trace]) -> None:
    assert counted(traces[GPU], "product")[0] == counted(traces[GPU], "product_and_sum")[0]


def test_offsets_in_unrolled_loops_are_part_of_the_access(traces: dict[str, Trace]) -> None:
    # Each further round has a load, an addition and a store; no arithmetic for its address.
    four, eight = (counted(traces[GPU], name)[0] for name in ("four_rounds", "eight_rounds"))
    assert eight - four == 4 * 3


def test_code_has_every_instruction_once(traces: dict[str, Trace]) -> None:
    """A warp executes a kernel without branches once, and a loop of unknown length many times."""
    instructions, code = size_of_code(traces[GPU], "product")
    assert code == 16 * instructions
    repeated, code = size_of_code(traces[GPU], "unknown_length")
    assert 16 * repeated > 5 * code > 0
    assert size_of_code(traces[WRITTEN], "unknown_length")[1] == 0


def size_of_code(trace: Trace, name: str) -> tuple[int, int]:
    """Return the instructions of one warp of a kernel, and the bytes of its code."""
    kernel = trace.kernels[[*KERNELS].index(name)]
    return kernel.warp_instructions, kernel.code_bytes


def test_units_of_sm_70_stay_busy(traces: dict[str, Trace]) -> None:
    # 64 dependent multiply-adds keep the single-precision unit for two cycles each; what else there is, is few.
    instructions, slots = counted(traces[GPU], "many")
    assert 2 * 64 - instructions <= slots < 64
    assert counted(traces[WRITTEN], "many")[1] == 0


def tail_of(trace: Trace, name: str) -> tuple[int, int]:
    """Return the instructions and unit-busy slots of a warp after its last operation."""
    (warp,) = trace.decode_chunk(trace.kernels[[*KERNELS].index(name)].chunks[0]).warps
    return int(warp["tail_gap_instructions"]), int(warp["tail_unit_busy_slots"])


def test_tail_keeps_units_busy(traces: dict[str, Trace]) -> None:
    """EXIT ends a kernel and takes a cycle of the integer unit; arithmetic after the last load is in the tail."""
    assert tail_of(traces[GPU], "copy") == (1, 0)
    instructions, slots = tail_of(traces[GPU], "many_at_the_end")
    assert 64 < instructions < 80
    assert slots == 2 * 64 - instructions


def test_addresses_in_local_memory_differ_by_their_offsets(traces: dict[str, Trace]) -> None:
    """An iteration adds a comparison, branch, two loads, sum, store, barrier and NOP; addresses cost nothing."""
    four, eight = (counted(traces[GPU], name)[0] for name in ("local_4", "local_8"))
    assert eight - four == 4 * (1 + 1 + 2 + 1 + 1 + 2)


def test_memory_is_the_same_where_local_addresses_are_taken_apart(traces: dict[str, Trace]) -> None:
    assert memory_of(traces[WRITTEN], "local_8") == memory_of(traces[GPU], "local_8") != bytes(4 * 4096)


def test_a_maximum_is_a_comparison_and_a_selection(traces: dict[str, Trace]) -> None:
    assert counted(traces[GPU], "larger_of_two")[0] == counted(traces[GPU], "sum_of_two")[0] + 1
