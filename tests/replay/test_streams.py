"""Kernels of different streams overlap if the machine allows it; all other kernels wait."""

from __future__ import annotations

import pytest

import buddysim
from buddysim.machine import Machine
from tests.replay.events import write_kernels

CHASE = range(0, 1 << 20, 1 << 12)  # 256 loads, each misses all caches
OTHER = range(1 << 20, 1 << 21, 1 << 12)


def spans(path, **settings):
    """Return the first and last picosecond of each kernel, and the total time."""
    overrides = {key.replace("__", "."): value for key, value in settings.items()}
    machine = Machine.load("p100-nvlink2").with_overrides(
        {"l2.fill_on_memcpy": False, "copies.timed": "none", **overrides}
    )
    result = buddysim.simulate(path, machine, "ideal")
    kernels = sorted(result.per_kernel, key=lambda kernel: kernel["index"])
    return [(k["launch_ps"], k["launch_ps"] + k["time_ps"]) for k in kernels], result.counters["time_ps"]


def test_two_streams_overlap_only_where_kernels_may_run_at_once(tmp_path):
    path = write_kernels(tmp_path / "t.bin", [(1, CHASE), (2, OTHER)])
    together, time = spans(path)
    apart, time_apart = spans(path, kernel__concurrent_kernels=False)
    assert together[0][0] == together[1][0] == 0
    assert apart[1][0] == apart[0][1]
    assert time < 0.6 * time_apart


@pytest.mark.parametrize("streams", [(1, 1), (0, 1), (1, 0), (0, 0)])
def test_one_stream_and_the_default_stream_run_in_order(tmp_path, streams):
    (first, second), _ = spans(write_kernels(tmp_path / "t.bin", [(stream, CHASE) for stream in streams]))
    assert second[0] == first[1]


def test_a_copy_waits_for_running_kernels_and_later_kernels_for_the_copy(tmp_path):
    kernels = [(1, CHASE), (2, CHASE[:16])]
    (first, second), _ = spans(write_kernels(tmp_path / "t.bin", kernels, copies_after=[0]))
    assert second[0] == first[1]
    (first, second), _ = spans(write_kernels(tmp_path / "u.bin", kernels, copies_after=[1]))
    assert second[1] < first[1]


def test_accelsim_runs_one_kernel_at_a_time():
    presets = {name: Machine.load(name).kernel.concurrent_kernels for name in Machine.presets()}
    assert [name for name, concurrent in presets.items() if not concurrent] == ["qv100-accelsim"]
