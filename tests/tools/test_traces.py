"""The real traces of the repository agree with the manifest, their checksums, and known counts."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path

import numpy as np
import pytest

from buddysim import Machine, simulate
from buddysim.compress import entry_classes
from buddysim.trace import Memcpy, Trace, open_trace, verify_trace

TRACES = Path(__file__).parents[2] / "traces"
MANIFEST = {entry["file"]: entry for entry in tomllib.loads((TRACES / "MANIFEST.toml").read_text())["trace"]}


def test_the_manifest_names_every_trace() -> None:
    assert set(MANIFEST) == {path.name for path in TRACES.glob("*.bin")}
    assert sum(entry["bytes"] for entry in MANIFEST.values()) < 12_000_000


@pytest.mark.parametrize("name", sorted(MANIFEST))
def test_checksum_source_and_contents(name: str) -> None:
    entry, path = MANIFEST[name], TRACES / name
    data = path.read_bytes()
    assert len(data) == entry["bytes"] < 5_000_000
    assert hashlib.sha256(data).hexdigest() == entry["sha256"]
    assert all(entry[key] for key in ("about", "licence", "source", "command"))
    with open_trace(path) as trace:
        verify_trace(trace)
        assert trace.provenance.licence == entry["licence"]
        assert trace.provenance.command == entry["command"]
        if trace.kernels:
            assert {"dependencies", "allocations"} <= set(trace.provenance.assumptions)
            assert {"contents", "values"} & set(trace.provenance.assumptions)
            assert {"gaps", "compute_gaps"} & set(trace.provenance.assumptions)


def counts(trace: Trace) -> tuple[int, int, int]:
    """Count warp instructions, memory instructions and sectors."""
    sectors = 0
    for kernel in trace.kernels:
        for ref in kernel.chunks:
            sectors += int(np.bitwise_count(trace.decode_chunk(ref).lines & np.uint64(15)).sum())
    return (
        sum(kernel.warp_instructions for kernel in trace.kernels),
        sum(kernel.memory_instructions for kernel in trace.kernels),
        sectors,
    )


def test_counts_of_vectoradd_and_bfs() -> None:
    with open_trace(TRACES / "vectoradd-turing.bin") as trace:
        assert counts(trace) == (983_040, 196_608, 786_432)
        assert [allocation.bytes for allocation in trace.allocations] == [4 << 20] * 6
        assert [snapshot.launch_index for snapshot in trace.snapshots] == [1, 2]
        assert "29360128 lane instructions, 196608 memory lines" in trace.provenance.assumptions["counts"]
    with open_trace(TRACES / "bfs-volta.bin") as trace:
        assert counts(trace) == (154_839, 38_584 - 7_635, 90_629)  # less the lines whose lanes are all off
        assert sum(isinstance(event, Memcpy) for event in trace.events) == 14


def test_fdtd_has_every_size_before_and_after_each_kernel() -> None:
    with open_trace(TRACES / "fdtd2048.bin") as trace:
        assert [kernel.launch_index for kernel in trace.kernels] == [750, 751, 752]
        assert [kernel.name for kernel in trace.kernels] == ["fdtd_kernel1", "fdtd_kernel2", "fdtd_kernel3"]
        assert sum(allocation.bytes for allocation in trace.allocations) == 3 * (16 << 20) + 2000
        points = [snapshot.launch_index for snapshot in trace.snapshots]
        run = [snapshot.launch_index for snapshot in trace.snapshots if not snapshot.for_replay]
        assert run == [0, 167, 333, 500, 667, 833, 1000, 1167, 1333, 1500]
        assert sorted({*run, 750, 751, 752, 753}) == points
        maps = {(points[one.snapshot], one.allocation): one.read() for one in trace.size_maps}
        assert set(maps) == {(point, a.index) for point in points for a in trace.allocations}
        assert not any(15 in classes for classes in maps.values())
        # Each kernel writes one of the arrays, and only its sizes change.
        written = {750: "fdtd_kernel1.ey", 751: "fdtd_kernel1.ex", 752: "fdtd_kernel1.hz"}
        for launch_index, name in written.items():
            for a in trace.allocations:
                changed = float(np.mean(maps[launch_index, a.index] != maps[launch_index + 1, a.index]))
                assert (0.05 < changed < 0.25) if a.name == name else changed == 0


def test_fdtds_size_maps_are_those_of_its_contents() -> None:
    with open_trace(TRACES / "fdtd2048.bin") as trace:
        maps = {(one.snapshot, one.allocation): one for one in trace.size_maps}
        compared = 0
        for snapshot in trace.snapshots:
            for contents in snapshot.contents:
                known = maps[snapshot.index, contents.allocation].read()
                for pages, data in contents.blocks():
                    entries = (pages[:, np.newaxis] * 64 + np.arange(64)).reshape(-1)
                    classes = entry_classes(data)
                    assert np.array_equal(known[entries[: len(classes)]], classes)
                    compared += len(classes)
        assert compared == 10 * (3 * 16 * 64 + 16)


@pytest.mark.slow
def test_kv_caches_overflow_and_are_bound_by_the_link() -> None:
    """With the defaults of `run`, half the link's bandwidth takes 1.7 times as long, and twice as much 0.7 times."""
    times = {}
    for link in (75, 150, 300):
        machine = Machine.load("p100-nvlink2").with_overrides({"link.bandwidth": f"{link} GB/s"})
        result = simulate(TRACES / "kv-cache.bin", machine, "buddy")
        times[link] = result.counters["time_ps"]
        assert result.counters["buddy.access_fraction"] > 0.8
        if link == 150:
            assert max(result.utilization, key=lambda name: result.utilization[name]) == "link_read"
            assert result.utilization["link_read"] > 0.6
    assert times[75] > 1.5 * times[150]
    assert times[300] < 0.8 * times[150]
