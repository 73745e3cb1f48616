"""Whole captures: content of the file, its replay, and failures."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from buddysim.compress import entry_classes
from buddysim.replay import simulate
from buddysim.trace import open_trace, verify_trace
from buddysim.trace.records import FLAG_TIMED, OP_ATOMIC, OP_BARRIER, OP_LOAD, OP_STORE
from tests.capture.opencl.kernels import JOBS, SOURCE
from tests.capture.opencl.running import captured, needs_opencl, plain
from tests.in_process import run_in_process


@pytest.fixture(autouse=True)
def opencl() -> None:
    needs_opencl()


def launches(job: Any, n: int) -> Any:
    return job | {"launches": job["launches"] * n}


def test_capture_is_valid_and_replays(tmp_path: Path) -> None:
    output, done = captured(JOBS["vector_add"] | {"exit_code": 7}, tmp_path)
    assert done.returncode == 7, done.stderr
    with open_trace(output) as trace:
        verify_trace(trace)
        assert [one.name for one in trace.allocations] == ["vector_add.a", "vector_add.b", "vector_add.c"]
        assert all(one.bytes == 1200 for one in trace.allocations)
        kinds = [type(event).__name__ for event in trace.events]
        assert kinds == ["Memcpy"] * 3 + ["KernelLaunch"] + ["Memcpy"] * 3
        kernel = trace.kernels[0]
        assert (kernel.name, kernel.grid, kernel.block) == ("vector_add", (5, 1, 1), (64, 1, 1))
        chunk = trace.decode_chunk(kernel.chunks[0])
        # 10 warps, 300 elements: the last one has 12 lanes and touches half of a line's sectors.
        assert chunk.ops["kind"].tolist() == [OP_LOAD, OP_LOAD, OP_STORE] * 10
        assert set(chunk.ops["flags"]) == {FLAG_TIMED}
        assert [int(line) & 0xFF for line in chunk.lines[-3:]] == [0x03, 0x03, 0x13]
        assert [int(line) & 0xFF for line in chunk.lines[:3]] == [0x0F, 0x0F, 0xFF]
        assert chunk.ops["use_distance"][:2].tolist() == [3, 1]
        first, last = trace.snapshots
        assert (first.launch_index, last.launch_index) == (0, 1)
        a, b, c = (last.read(n)[1].view(np.float32) for n in range(3))
        assert np.array_equal(a + b, c)
        assert not first.read(2)[1].any()
        assert trace.provenance.assumptions["end"].startswith("none: the program ended with exit code 7")
    result = simulate(output, "v100", "buddy")
    assert result.counters


def test_another_compressor(tmp_path: Path) -> None:
    output, done = captured(JOBS["vector_add"], tmp_path, "--compressor", "zvc")
    assert done.returncode == 0, done.stderr
    with open_trace(output) as trace:
        assert {size_map.compressor for size_map in trace.size_maps} == {"zvc"}
        for size_map in trace.size_maps:
            data = trace.snapshots[size_map.snapshot].read(size_map.allocation)[1]
            assert np.array_equal(size_map.read(), entry_classes(data, "zvc"))


def test_the_same_program_gives_the_same_bytes(tmp_path: Path) -> None:
    files = []
    for attempt in ("first", "second"):
        folder = tmp_path / attempt
        folder.mkdir()
        output, done = captured(launches(JOBS["histogram"], 3), folder)
        assert done.returncode == 0, done.stderr
        with open_trace(output) as trace:
            files.append((trace.fingerprint, trace.provenance.assumptions))
    assert files[0] == files[1]


def test_short_logs_give_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = JOBS["breaking_loop"]
    output, _ = captured(job, tmp_path)
    monkeypatch.setenv("BUDDYSIM_CAPTURE_LOG", "1")
    shorter, _ = captured(job, tmp_path, name="shorter.bin")
    with open_trace(output) as one, open_trace(shorter) as other:
        assert one.fingerprint == other.fingerprint


def test_ten_snapshots_however_many_launches(tmp_path: Path) -> None:
    output, done = captured(launches(JOBS["sum_of_group"], 137), tmp_path)
    assert done.returncode == 0, done.stderr
    with open_trace(output) as trace:
        points = [snapshot.launch_index for snapshot in trace.snapshots]
        assert len(points) == 10
        assert (points[0], points[-1]) == (0, 137)
        assert all(abs(point - attempt * 137 / 9) <= 4 for attempt, point in enumerate(points))


def test_atomics_and_barriers(tmp_path: Path) -> None:
    output, _ = captured(JOBS["histogram"], tmp_path)
    with open_trace(output) as trace:
        chunk = trace.decode_chunk(trace.kernels[0].chunks[0])
        kinds = chunk.ops["kind"][:5].tolist()
        assert kinds == [OP_BARRIER, OP_LOAD, OP_ATOMIC, OP_BARRIER, OP_ATOMIC]
        assert trace.kernels[0].shared_memory_bytes == 256
        assert all(int(flags) & 4 for flags in chunk.ops["flags"][[2, 4]])  # their results are unused


@pytest.mark.parametrize(
    ("death", "code", "says"),
    [
        ({"die": "signal"}, 137, "killed by signal 9 (SIGKILL)"),
        ({"die": "exit"}, 9, "ended at once, with exit code 9"),
    ],
)
def test_operations_before_the_end_are_in_the_trace(death: Any, code: int, says: str, tmp_path: Path) -> None:
    output, done = captured(launches(JOBS["transpose"], 3) | death, tmp_path)
    assert done.returncode == code
    assert says in done.stderr
    with open_trace(output) as trace:
        verify_trace(trace)
        assert len(trace.kernels) == 3
        assert says in trace.provenance.assumptions["end"]
        assert [snapshot.launch_index for snapshot in trace.snapshots] == [0, 1, 2]


@pytest.mark.skipif("BUDDYSIM_SANITIZED" in os.environ, reason="the sanitizer in the program ends it itself")
@pytest.mark.slow
def test_a_crash_inside_a_kernel(tmp_path: Path) -> None:
    crash = "__kernel void crash(__global int *a) { if (get_global_id(0) == 70) a[1 << 29] = 1; else a[0] = 1; }"
    job = JOBS["transpose"]
    job = job | {"source": SOURCE + crash}
    job["launches"] = [
        *job["launches"],
        {"kernel": "crash", "global": [128], "local": [32], "arguments": [{"buffer": 0}]},
    ]
    output, done = captured(job, tmp_path)
    assert done.returncode == 139
    with open_trace(output) as trace:
        verify_trace(trace)
        assert [kernel.name for kernel in trace.kernels] == ["transpose", "crash"]
        assert "kernel crash was interrupted" in trace.provenance.assumptions["unknown"]


def test_unknown_functions_are_named(tmp_path: Path) -> None:
    function = "clCreatePipe"
    output, done = captured(JOBS["two_branches"] | {"call": "pipe"}, tmp_path)
    assert f"{function} is not known to the capture" in done.stderr
    with open_trace(output) as trace:
        assert function in trace.provenance.assumptions["unknown"]
        assert len(trace.kernels) == 1


def test_forked_child_does_not_change_the_trace(tmp_path: Path) -> None:
    output, done = captured(JOBS["two_branches"] | {"call": "fork"}, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == plain(JOBS["two_branches"], tmp_path)
    with open_trace(output) as trace:
        verify_trace(trace)
        assert len(trace.allocations) == len(JOBS["two_branches"]["buffers"])


@pytest.mark.slow
def test_refused_kernel_is_named_and_runs_untraced(tmp_path: Path) -> None:
    refused = """
    __kernel void by_hand(__global float *b) { __asm__ volatile("nop"); b[0] = 16; }
    __kernel void hello(__global const int *a, __global int *b) { b[get_global_id(0)] = a[0] + 1; }
    """
    job = JOBS["two_branches"] | {"source": SOURCE + refused}
    job["launches"] = [{"kernel": "by_hand", "global": [1], "local": [1], "arguments": [{"buffer": 1}]}]
    job["launches"] += JOBS["two_branches"]["launches"]
    output, done = captured(job, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "untraced kernel by_hand: it has inline assembly" in done.stderr
    assert done.stdout == plain(job, tmp_path)
    with open_trace(output) as trace:
        assert [(kernel.name, kernel.launch_index) for kernel in trace.kernels] == [("two_branches", 1)]


@pytest.mark.parametrize(
    "options", ["", *(pytest.param(one, marks=pytest.mark.slow) for one in ("-cl-denorms-are-zero", "-cl-opt-disable"))]
)
def test_results_and_output_are_pocls(options: str, tmp_path: Path) -> None:
    small = """
    __kernel void small(__global float *a) {
        int i = get_global_id(0);
        a[i] = a[i] * 1e-39f * 0.5f + 1e-41f;
        if (i == 3) printf("%d %a %s\\n", i, a[i], "of 64");
    }
    """
    job = {"source": small, "options": options, "buffers": [{"bytes": 256, "fill": "floats"}]}
    job["launches"] = [{"kernel": "small", "global": [64], "local": [32], "arguments": [{"buffer": 0}]}]
    _, done = captured(job, tmp_path)
    assert done.stdout == plain(job, tmp_path)
    assert "of 64" in done.stdout


def test_a_program_without_opencl(tmp_path: Path) -> None:
    command = ("capture", "opencl", "-o", "out.bin", "--", "false")
    done = run_in_process(*command, folder=tmp_path, environment=os.environ)
    assert done.returncode == 1
    assert "the program used no OpenCL" in done.stderr


def test_missing_launches_are_named(tmp_path: Path) -> None:
    command = ("capture", "opencl", "--")
    done = run_in_process(*command, sys.executable, folder=tmp_path, environment=os.environ | {"PATH": "/nowhere"})
    assert done.returncode == 2
    assert "apt install clang-15 g++ llvm-15-dev" in done.stderr
    done = run_in_process(*command, "no-such-program", folder=tmp_path, environment=os.environ)
    assert (done.returncode, done.stdout) == (2, "")
    assert "no-such-program: not found" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("n", [4 << 30, (4 << 30) + (1 << 20)])
def test_four_gigabytes_and_more(tmp_path: Path, n: int) -> None:
    source = "__kernel void far(__global uchar *a, const uint last) { a[(ulong)get_global_id(0) * last] = 7; }"
    job = {
        "source": source,
        "buffers": [{"bytes": n, "fill": "none"}],
        "launches": [
            {"kernel": "far", "global": [2], "local": [2], "arguments": [{"buffer": 0}, {"i32": (1 << 32) - 1}]}
        ],
    }
    output, done = captured(job, tmp_path, "--snapshots", "0")
    if "clCreateBuffer: OpenCL error -61" in done.stderr:  # CL_INVALID_BUFFER_SIZE, PoCL's own limit
        pytest.skip("PoCL gives no buffers of 4 GB where memory is small")
    assert done.returncode == 0, done.stderr
    with open_trace(output) as trace:
        base = trace.allocations[0].base
        lines = trace.decode_chunk(trace.kernels[0].chunks[0]).lines
        assert [(int(line) >> 8 << 7) - base for line in lines] == [0, ((1 << 32) - 1) // 128 * 128]


def test_a_kernel_with_the_name_of_a_c_library_function(tmp_path: Path) -> None:
    source = "kernel void advance(global uint *a) { a[get_global_id(0)] += 1; }"
    launch = {"kernel": "advance", "global": [64], "local": [32], "arguments": [{"buffer": 0}]}
    job = {"source": source, "buffers": [{"bytes": 256, "fill": "count"}], "launches": [launch]}
    output, done = captured(job, tmp_path)
    assert done.returncode == 0, done.stderr
    with open_trace(output) as trace:
        assert trace.snapshots[-1].read(0)[1].view(np.uint32).tolist() == list(range(1, 65))
