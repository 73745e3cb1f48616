"""The real traces of the repository: manifest, checksums, verification, and what they must hold."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path

import numpy as np
import pytest

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
        assert {"gaps", "dependencies", "contents", "allocations"} <= set(trace.provenance.assumptions)


def counts(trace: Trace) -> tuple[int, int, int]:
    """Warp instructions, memory instructions, sectors."""
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
        assert [snapshot.point for snapshot in trace.snapshots] == [1, 2]
        assert "29360128 lane instructions, 196608 memory lines" in trace.provenance.assumptions["counts"]
    with open_trace(TRACES / "bfs-volta.bin") as trace:
        assert counts(trace) == (154_839, 38_584 - 7_635, 90_629)  # less the lines whose lanes are all off
        assert sum(isinstance(event, Memcpy) for event in trace.events) == 14


def test_fdtd_starts_from_a_sampled_snapshot_and_ends_before_a_whole_one() -> None:
    with open_trace(TRACES / "fdtd2048.bin") as trace:
        assert [kernel.ordinal for kernel in trace.kernels] == [357, 358, 359]
        assert [kernel.name for kernel in trace.kernels] == ["fdtd_kernel1", "fdtd_kernel2", "fdtd_kernel3"]
        before = max(s.point for s in trace.snapshots if s.point <= 357)
        after = min(s.point for s in trace.snapshots if s.point >= 358)
        assert (before, after) == (325, 361)
        snapshot = {s.point: s.index for s in trace.snapshots}
        unknown = {
            point: sum(
                int(np.sum(size_map.read() == 15))
                for size_map in trace.size_maps
                if size_map.snapshot == snapshot[point]
            )
            for point in (before, after)
        }
        assert unknown[after] == 0
        assert 0 < unknown[before] < sum(allocation.entries for allocation in trace.allocations)
        assert sum(allocation.bytes for allocation in trace.allocations) == 3 * (16 << 20) + 484
