"""`capture opencl --launches` end to end: the traced launches, and the sizes before and after each."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from buddysim.buddy import SizeSource, profile
from buddysim.compress import entry_classes
from buddysim.replay import simulate
from buddysim.trace import KernelLaunch, Trace, open_trace, verify_trace
from tests.capture.opencl.kernels import JOBS
from tests.capture.opencl.running import PROGRAM, captured, needs_opencl, plain, write_job
from tests.in_process import run_in_process

N = 8192  # numbers in each buffer
SOURCE = """
__kernel void stir(__global uint *a, const uint t) {
    uint i = get_global_id(0);
    if (i < 300 * t)
        a[i] = i * 2654435761u ^ t << (i & 31);
}
__kernel void by_hand(__global float *b) { __asm__ volatile("nop"); b[0] = 16; }
"""


@pytest.fixture(autouse=True)
def opencl() -> None:
    needs_opencl()


def step(number: int, buffer: int = 0) -> Any:
    return {"kernel": "stir", "global": [N], "local": [64], "arguments": [{"buffer": buffer}, {"i32": number}]}


def stepped(data: np.ndarray[Any, Any], number: int) -> np.ndarray[Any, Any]:
    """Return the result of `stir`."""
    i, t = np.arange(N, dtype=np.uint32), np.uint32(number)
    with np.errstate(over="ignore"):
        return np.where(i < 300 * t, i * np.uint32(2654435761) ^ t << (i & np.uint32(31)), data)


def filled(seed: int) -> np.ndarray[Any, Any]:
    """Return the numbers of a buffer with the fill ``random32``."""
    return np.frombuffer(random.Random(seed).randbytes(4 * N), np.uint32)


def states(launches: int) -> list[np.ndarray[Any, Any]]:
    """Return the buffer of `job` after 0, 1, ... launches."""
    result = [np.arange(N, dtype=np.uint32)]
    for number in range(launches):
        result.append(stepped(result[-1], number))
    return result


def job(launches: int) -> Any:
    return {
        "source": SOURCE,
        "buffers": [{"bytes": 4 * N, "fill": "count"}],
        "launches": [step(number) for number in range(launches)],
    }


def sizes(trace: Trace, allocation: int = 0) -> dict[int, list[int]]:
    """Return size classes of an allocation by launch index; every size map must know every entry."""
    classes_at = {}
    for size_map in trace.size_maps:
        if size_map.allocation == allocation:
            classes = size_map.read()
            assert len(classes) == trace.allocations[allocation].entries
            assert 15 not in classes
            classes_at[trace.snapshots[size_map.snapshot].launch_index] = classes.tolist()
    return classes_at


def test_launches_of_the_window_with_exact_sizes_around_each(tmp_path: Path) -> None:
    output, done = captured(job(25), tmp_path, "--launches", "10:13", "--snapshots", "4", "--contents-every", "0")
    assert done.returncode == 0, done.stderr
    assert done.stdout == plain(job(25), tmp_path)
    whole, _ = captured(job(25), tmp_path, name="whole.bin")
    with open_trace(output) as trace, open_trace(whole) as other:
        verify_trace(trace)
        assert [kernel.launch_index for kernel in trace.kernels] == [10, 11, 12]
        for kernel in trace.kernels:
            same = other.kernels[kernel.launch_index]
            assert (kernel.name, kernel.grid, kernel.block) == (same.name, same.grid, same.block)
            for traced_ref, full_ref in zip(kernel.chunks, same.chunks, strict=True):
                one, two = trace.decode_chunk(traced_ref), other.decode_chunk(full_ref)
                assert all(
                    np.array_equal(getattr(one, f), getattr(two, f)) for f in ("blocks", "warps", "ops", "lines")
                )
        points = [snapshot.launch_index for snapshot in trace.snapshots]
        assert points == sorted(set(points))
        assert {10, 11, 12, 13} <= set(points)
        assert (points[0], points[-1]) == (0, 25)
        direct = {point: entry_classes(data.view(np.uint8)).tolist() for point, data in enumerate(states(25))}
        captured_sizes = sizes(trace)
        assert set(captured_sizes) == set(points)
        assert captured_sizes == {point: direct[point] for point in points}
        assert captured_sizes[10] != captured_sizes[11] != captured_sizes[12] != captured_sizes[13]
        source = SizeSource(trace)
        assert [
            trace.snapshots[source.after_store(launch_index, 0) or 0].launch_index for launch_index in (10, 11, 12)
        ] == [11, 12, 13]
        of_run = [snapshot.index for snapshot in trace.snapshots if not snapshot.for_replay]
        assert len(of_run) == 4
        assert profile(trace).rows[0].snapshots == tuple(of_run)
        assert "Only launches 10:13 of 25 are traced" in trace.provenance.assumptions["launches"]
    assert simulate(output, "v100", "buddy").counters["sizes.extrapolated_fraction"] == 0


def test_total_launches_gives_equidistant_snapshots(tmp_path: Path) -> None:
    options = ["--snapshots", "4", "--total-launches", "23"]
    output, done = captured(job(23), tmp_path, *options)
    assert (done.returncode, "warning" in done.stderr) == (0, False)
    with open_trace(output) as trace:
        assert [snapshot.launch_index for snapshot in trace.snapshots] == [0, 8, 15, 23]
        assert len(trace.kernels) == 23
        direct = [entry_classes(data.view(np.uint8)).tolist() for data in states(23)]
        assert sizes(trace) == {point: direct[point] for point in (0, 8, 15, 23)}
        assert "a run stated to have 23 launches" in trace.provenance.assumptions["contents"]
    _, done = captured(job(24), tmp_path, *options)
    assert (done.returncode, "--total-launches 23: the run had 24 launches" in done.stderr) == (0, True)
    _, done = captured(job(2), tmp_path, *options, "--launches", "22:24")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--launches 22:24 expects at least 24 launches, the run has 23" in done.stderr


def test_copies_next_to_the_window_are_events_and_earlier_ones_in_snapshots(tmp_path: Path) -> None:
    program = job(0)
    program["launches"] = [
        step(1),
        {"write": 0, "fill": "random32", "seed": 1},
        step(2),
        {"write": 0, "fill": "random32", "seed": 2},
        step(3),
        {"write": 0, "fill": "random32", "seed": 3},
        step(4),
        {"write": 0, "fill": "random32", "seed": 4},
        step(5),
    ]
    output, done = captured(program, tmp_path, "--launches", "2:3", "--snapshots", "0")
    assert done.returncode == 0, done.stderr
    written = {seed: filled(seed) for seed in range(1, 5)}
    with open_trace(output) as trace:
        verify_trace(trace)
        kinds = [type(event).__name__ for event in trace.events]
        assert kinds == ["Memcpy", "KernelLaunch", "Memcpy"]
        assert set(sizes(trace)) == {2, 3}
        assert sizes(trace)[2] == entry_classes(written[2].view(np.uint8)).tolist()
        assert sizes(trace)[3] == entry_classes(written[3].view(np.uint8)).tolist()


def test_buffers_made_and_released_within_the_window(tmp_path: Path) -> None:
    program = job(3)
    program["launches"] += [
        {"new": {"bytes": 4 * N, "fill": "random32", "seed": 7}},
        step(9, 1),
        {"release": 1},
        step(4),
        step(5),
    ]
    output, done = captured(program, tmp_path, "--launches", "2:5", "--snapshots", "2")
    assert done.returncode == 0, done.stderr
    made = filled(7)
    with open_trace(output) as trace:
        verify_trace(trace)
        kernels = [index for index, event in enumerate(trace.events) if isinstance(event, KernelLaunch)]
        first, second = trace.allocations
        assert (first.alloc_event, first.free_event) == (0, len(trace.events))
        assert kernels[0] < second.alloc_event <= kernels[1]
        assert second.free_event is not None
        assert kernels[1] < second.free_event <= kernels[2]
        assert set(sizes(trace)) == {0, 2, 3, 4, 5, 6}
        # Released after launch 3: its last sizes are those of point 4, which write-backs of that launch take.
        assert sizes(trace, 1) == {
            3: entry_classes(made.view(np.uint8)).tolist(),
            4: entry_classes(stepped(made, 9).view(np.uint8)).tolist(),
        }
    assert simulate(output, "v100", "buddy").counters["sizes.extrapolated_fraction"] == 0


def test_allocations_from_before_the_window_keep_their_names(tmp_path: Path) -> None:
    program = JOBS["vector_add"]
    program = program | {"launches": program["launches"] * 5}
    output, done = captured(program, tmp_path, "--launches", "4", "--snapshots", "0")
    assert done.returncode == 0, done.stderr
    with open_trace(output) as trace:
        assert [one.name for one in trace.allocations] == ["vector_add.a", "vector_add.b", "vector_add.c"]
        assert [one.alloc_event for one in trace.allocations] == [0, 0, 0]
        assert [kernel.launch_index for kernel in trace.kernels] == [4]


@pytest.mark.parametrize(("window", "launch_indices"), [("3:", [3, 4]), (":2", [0, 1]), (":", [0, 1, 2, 3, 4])])
def test_open_windows(window: str, launch_indices: list[int], tmp_path: Path) -> None:
    output, done = captured(job(5), tmp_path, "--launches", window, "--snapshots", "0")
    assert done.returncode == 0, done.stderr
    with open_trace(output) as trace:
        assert [kernel.launch_index for kernel in trace.kernels] == launch_indices
        assert list(sizes(trace)) == [*launch_indices, launch_indices[-1] + 1]


@pytest.mark.slow
def test_a_run_with_fewer_launches_than_the_window(tmp_path: Path) -> None:
    output, done = captured(job(5), tmp_path, "--launches", "5:8")
    assert done.returncode == 2
    assert "--launches 5:8 expects at least 8 launches, the run has 5" in done.stderr
    assert not output.exists()
    output, done = captured(job(5), tmp_path, "--launches", "4:8")
    assert done.returncode == 2
    assert "the run has 5; " + str(output) + " has 1 of the window" in done.stderr
    with open_trace(output) as trace:
        verify_trace(trace)
        assert [kernel.launch_index for kernel in trace.kernels] == [4]
    _, done = captured(job(5) | {"die": "exit"}, tmp_path, "--launches", "4:8")
    assert done.returncode == 9
    assert "warning: --launches 4:8 expects at least 8 launches, the run has 5" in done.stderr


@pytest.mark.slow
def test_launches_outside_of_the_window_run_in_pocl(tmp_path: Path) -> None:
    """The message names a kernel that can't be traced only if it is in the window."""
    program = job(3)
    by_hand = {"kernel": "by_hand", "global": [1], "local": [1], "arguments": [{"buffer": 0}]}
    program["launches"].insert(1, by_hand)
    for window, named in (("2:4", False), ("1:3", True)):
        output, done = captured(program, tmp_path, "--launches", window)
        assert done.returncode == 0, done.stderr
        assert done.stdout == plain(program, tmp_path)
        assert ("untraced kernel by_hand" in done.stderr) is named
        with open_trace(output) as trace:
            assert [kernel.launch_index for kernel in trace.kernels] == ([2] if named else [2, 3])
            assert ("untraced" in trace.provenance.assumptions) is named


def test_launches_that_the_program_holds_back(tmp_path: Path) -> None:
    program = job(33)
    program["launches"].insert(1, {"hold": True})
    program["launches"].insert(31, {"hold": False})  # after launch 29
    output, done = captured(program, tmp_path, "--launches", "1:32", "--snapshots", "0")
    assert done.returncode == 0, done.stderr
    assert done.stdout == plain(program, tmp_path)
    assert "no sizes next to traced launches while the program holds launches back" in done.stderr
    direct = states(33)
    with open_trace(output) as trace:
        verify_trace(trace)
        assert [kernel.launch_index for kernel in trace.kernels] == list(range(1, 32))
        classes = {point: entry_classes(direct[point].view(np.uint8)).tolist() for point in (30, 31, 32)}
        assert sizes(trace) == classes


def test_the_list_of_launches(tmp_path: Path) -> None:
    command = ("capture", "opencl", "--list-launches")
    program = ("--", sys.executable, PROGRAM, write_job(job(6), tmp_path))
    done = run_in_process(*command, *program, folder=tmp_path, environment=os.environ)
    assert done.returncode == 0, done.stderr
    assert done.stdout == plain(job(6), tmp_path)
    assert ["0:6", f"{N}x1x1", "64x1x1", "stir"] in [line.split() for line in done.stderr.splitlines()]
    done = run_in_process(*command, "-o", "out.bin", *program, folder=tmp_path, environment=os.environ)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--list-launches writes no trace file" in done.stderr
