"""Conversion of bundles: kernels, allocations, contents, size maps, provenance; damaged bundles."""

from __future__ import annotations

import json
import lzma
import random
import tarfile
from pathlib import Path

import numpy as np
import pytest

import buddysim.trace as bt
from buddysim.base.errors import BuddysimError
from buddysim.compress import entry_classes
from buddysim.importers.opencl import BundleImportOptions, convert_bundle
from buddysim.importers.opencl.assumptions import COMPUTE_GAP, FIRST_COMPUTE_GAP, TAIL
from tests.importers.opencl.captures import write_bundle
from tools.archive import folder_with


def converted(bundle: Path, tmp_path: Path, options: BundleImportOptions | None = None) -> bt.Trace:
    convert_bundle(bundle, tmp_path / "out.bin", options)
    trace = bt.open_trace(tmp_path / "out.bin")
    bt.verify_trace(trace)
    return trace


def test_a_whole_bundle(tmp_path: Path) -> None:
    trace = converted(write_bundle(tmp_path / "bundle"), tmp_path)
    assert [(kernel.name, kernel.launch_index, kernel.grid, kernel.block) for kernel in trace.kernels] == [
        ("copy", launch, (3, 1, 1), (64, 1, 1)) for launch in range(3)
    ]
    assert [(a.base, a.bytes) for a in trace.allocations] == [(1 << 48, 40_000), (2 << 48, 20_000)]
    chunk = trace.decode_chunk(trace.kernels[0].chunks[0])
    assert chunk.ops["kind"].tolist() == [bt.OP_LOAD, bt.OP_LOAD, bt.OP_STORE] * 6
    assert chunk.ops["gap_instructions"].tolist() == [FIRST_COMPUTE_GAP, COMPUTE_GAP, COMPUTE_GAP] * 6
    assert chunk.ops["use_distance"].tolist() == [COMPUTE_GAP + 2, 1, 0] * 6
    assert not np.any(chunk.ops["flags"])
    assert set(chunk.warps["tail_gap_instructions"].tolist()) == {TAIL}
    assert {"compute_gaps", "dependencies", "contents", "allocations"} <= set(trace.provenance.assumptions)
    assert trace.provenance.assumptions["compute_gaps"].startswith(
        "Only accesses were captured. Compute gaps are assumed"
    )


def test_snapshots_follow_their_launch_and_size_maps_cover_their_contents(tmp_path: Path) -> None:
    bundle = write_bundle(tmp_path / "bundle")
    trace = converted(bundle, tmp_path, BundleImportOptions(contents_every=2))
    assert [snapshot.launch_index for snapshot in trace.snapshots] == [1, 3]
    values = np.fromfile(bundle / "snap_0" / f"{1 << 48}.bin", np.uint8)
    pages, data = trace.snapshots[0].read(0)
    assert pages is not None
    assert pages.tolist() == [0, 2, 4]
    assert data[8192:16384].tobytes() == values[16384:24576].tobytes()
    maps = {(m.snapshot, m.allocation): m.read() for m in trace.size_maps}
    assert maps[0, 0].tolist() == entry_classes(np.concatenate([values, np.zeros(64, np.uint8)])).tolist()
    assert maps[0, 1][:64].tolist() == maps[0, 0][:64].tolist()
    assert set(maps[0, 1][64:128].tolist()) == {15}
    assert len(maps[0, 1]) == 157


def test_a_range_of_launches_is_converted(tmp_path: Path) -> None:
    bundle = write_bundle(tmp_path / "bundle")
    trace = converted(bundle, tmp_path, BundleImportOptions(launches=(1, 2), contents_every=0, snapshots=[2]))
    assert [kernel.launch_index for kernel in trace.kernels] == [1]
    assert [snapshot.launch_index for snapshot in trace.snapshots] == [3]
    assert not trace.snapshots[0].contents
    assert len(trace.size_maps) == 2


def test_archives(tmp_path: Path) -> None:
    bundle = write_bundle(tmp_path / "bundle")
    with tarfile.open(tmp_path / "bundle.tar.xz", "w:xz") as archive:
        archive.add(bundle, "bundle")
    with folder_with(tmp_path / "bundle.tar.xz", "meta.jsonl") as folder:
        assert (folder / "warp.trace.xz").is_file()
    assert not folder.exists()
    (tmp_path / "short.tar.xz").write_bytes((tmp_path / "bundle.tar.xz").read_bytes()[:-100])
    (tmp_path / "text").write_text("no archive")
    for name in ("short.tar.xz", "text"):
        with pytest.raises(BuddysimError), folder_with(tmp_path / name, "meta.jsonl"):
            pass


def damage_json(bundle: Path) -> None:
    (bundle / "meta.jsonl").write_text("{not json\n")


def omit_a_buffer(bundle: Path) -> None:
    lines = (bundle / "meta.jsonl").read_text().splitlines()
    (bundle / "meta.jsonl").write_text("\n".join(lines[1:]))


def truncate_the_trace(bundle: Path) -> None:
    data = lzma.decompress((bundle / "warp.trace.xz").read_bytes())
    (bundle / "warp.trace.xz").write_bytes(lzma.compress(data[:-50]))


def truncate_the_stream(bundle: Path) -> None:
    path = bundle / "warp.trace.xz"
    path.write_bytes(path.read_bytes()[:-30])


def truncate_a_snapshot(bundle: Path) -> None:
    path = bundle / "snap_0" / f"{1 << 48}.bin"
    path.write_bytes(path.read_bytes()[:-1])


def misnamed_snapshot(bundle: Path) -> None:
    (bundle / "snap_0" / "what.bin").write_bytes(b"x")


def wrong_counts(bundle: Path) -> None:
    path = bundle / "meta.jsonl"
    path.write_text(path.read_text().replace('"warp_ops": 18', '"warp_ops": 17'))


def no_trace(bundle: Path) -> None:
    (bundle / "warp.trace.xz").unlink()


@pytest.mark.parametrize(
    "damage",
    [
        damage_json, omit_a_buffer, truncate_the_trace, truncate_the_stream, truncate_a_snapshot, misnamed_snapshot,
        wrong_counts, no_trace,
    ],
)  # fmt: skip
def test_damaged_bundles_leave_no_file(damage: object, tmp_path: Path) -> None:
    bundle = write_bundle(tmp_path / "bundle")
    assert callable(damage)
    damage(bundle)
    with pytest.raises(BuddysimError) as caught:
        convert_bundle(bundle, tmp_path / "out.bin")
    assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]


@pytest.mark.slow
def test_mutated_descriptions_never_crash(tmp_path: Path) -> None:
    rng = random.Random(11)
    bundle = write_bundle(tmp_path / "bundle")
    lines = (bundle / "meta.jsonl").read_text().splitlines()
    for _ in range(150):
        changed = [json.loads(line) for line in lines]
        event = rng.choice(changed)
        key = rng.choice(list(event))
        event[key] = rng.choice([None, -1, 0, "x", [], [0, 0, 0], [1, 2], 1 << 70, 1e300, {}, 3, 1 << 48])
        if rng.random() < 0.3:
            changed.remove(rng.choice(changed))
        (bundle / "meta.jsonl").write_text("\n".join(json.dumps(event) for event in changed))
        try:
            convert_bundle(bundle, tmp_path / "out.bin")
        except BuddysimError as error:
            assert "\n" not in str(error)
            assert not (tmp_path / "out.bin").exists()
        else:
            (tmp_path / "out.bin").unlink()
