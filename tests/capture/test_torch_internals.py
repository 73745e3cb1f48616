"""Components of ``capture torch`` that need no PyTorch: schedule, spool, derived kernels, missing PyTorch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim import cli
from buddysim.base.errors import BuddysimError
from buddysim.capture.torch.assemble import assemble
from buddysim.capture.torch.operator_kernels import OperandRange, write_operator
from buddysim.capture.torch.snapshot_schedule import SnapshotSchedule
from buddysim.capture.torch.spool import Spool, SpooledSnapshot, StorageContents, storage_contents
from buddysim.trace import OP_LOAD, OP_STORE, Provenance, TraceWriter, open_trace, verify_trace


@given(st.integers(1, 2000), st.integers(1, 12))
def test_snapshots_of_an_unknown_length_are_equally_spaced(length: int, count: int) -> None:
    schedule = SnapshotSchedule(count)
    stored: set[int] = set()
    for iteration in range(length):
        if schedule.due(iteration):
            stored.add(iteration)
            stored -= set(schedule.took(iteration))
    assert sorted(stored) == schedule.taken == list(range(0, length, schedule.distance))
    assert min(count, length) <= len(stored) < 2 * count


@given(st.integers(1, 500), st.integers(1, 12))
def test_snapshots_of_a_known_length_reach_its_end(steps: int, count: int) -> None:
    schedule = SnapshotSchedule(count, steps)
    due = [iteration for iteration in range(steps) if schedule.due(iteration)]
    assert due[0] == 0
    if count > 1:
        assert due[-1] == steps - 1
        assert len(due) == min(count, steps)


BASE = 1 << 20
operands = st.lists(
    st.builds(OperandRange, st.integers(BASE, BASE + 5000), st.integers(1, 20000), st.booleans()),
    min_size=1,
    max_size=4,
)


@settings(max_examples=60)
@given(operands, st.integers(0, 10**7))
def test_a_kernel_touches_each_sector_of_each_operand_once(
    tmp_path_factory: pytest.TempPathFactory, given_operands: list[OperandRange], flops: int
) -> None:
    path = tmp_path_factory.mktemp("kernel") / "x.bin"
    with TraceWriter(path, Provenance("test")) as writer:
        writer.add_allocation("all", BASE, 1 << 20)
        write_operator(writer, "k", given_operands, flops, 5)
    expected: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for operand in given_operands:
        first, end = operand.address, operand.address + operand.bytes
        for line in range(first // 128, (end - 1) // 128 + 1):
            touched = whole = 0
            for sector in range(4):
                start = line * 128 + sector * 32
                touched |= (start < end and start + 32 > first) << sector
                whole |= (operand.written and first <= start and start + 32 <= end) << sector
            kind = OP_STORE if operand.written else OP_LOAD
            expected.setdefault((line, kind), []).append((touched, whole))
    masks_of: dict[tuple[int, int], list[tuple[int, int]]] = {}
    with open_trace(path) as trace:
        verify_trace(trace)
        for ref in trace.kernels[0].chunks:
            chunk = trace.decode_chunk(ref)
            for op, line in zip(chunk.ops, chunk.lines, strict=True):
                key = int(line) >> 8, int(op["kind"])
                masks_of.setdefault(key, []).append((int(line) & 15, int(line) >> 4 & 15))
    assert {key: sorted(masks) for key, masks in masks_of.items()} == {key: sorted(m) for key, m in expected.items()}


def test_gaps_hold_the_multiply_adds(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "x.bin", Provenance("test")) as writer:
        writer.add_allocation("all", BASE, 1 << 20)
        # 16 lines read, 16 written: 2 x 32 lanes x 100 instructions x 32 accesses
        write_operator(writer, "k", [OperandRange(BASE, 2048, False), OperandRange(BASE, 2048, True)], 204_800, 0)
    with open_trace(tmp_path / "x.bin") as trace:
        kernel = trace.kernels[0]
        # 8 warps with 2 loads and 2 stores each: 8 + 100 before the first, 2 + 100 before the others, 1 after the last
        assert kernel.warp_instructions == 8 * (4 + 108 + 3 * 102 + 1)


@settings(max_examples=20)
@given(st.integers(1, 40_000), st.integers(0, 20_000))
def test_spool_returns_stored_snapshots(tmp_path_factory: pytest.TempPathFactory, size: int, budget: int) -> None:
    spool = Spool.for_trace(tmp_path_factory.mktemp("spool") / "x.bin")
    data = np.random.default_rng(size).integers(0, 2, size, dtype=np.uint8)
    contents = storage_contents("a: b", "weight", data, budget)
    spool.keep(SpooledSnapshot(3, 1.5, (contents, storage_contents("c", "input", data[:1], budget))))
    assert spool.iterations == [3]
    snapshot = spool.snapshot(3)
    assert (snapshot.iteration, snapshot.loss, len(snapshot.storages)) == (3, 1.5, 2)
    same: StorageContents = snapshot.storages[0]
    assert (same.name, same.role, same.bytes) == ("a: b", "weight", size)
    np.testing.assert_array_equal(same.classes, contents.classes)
    if contents.pages is None:
        np.testing.assert_array_equal(same.data, data)
    else:
        assert same.pages is not None
        pages = [data[page * 8192 : (page + 1) * 8192] for page in same.pages.astype(int)]
        np.testing.assert_array_equal(same.data, np.concatenate([data[:0], *pages]))


def test_a_damaged_snapshot_is_named(tmp_path: Path) -> None:
    spool = Spool.for_trace(tmp_path / "x.bin")
    (spool.folder / "snapshot-4.npz").write_bytes(b"nothing")
    with pytest.raises(BuddysimError, match=r"snapshot-4\.npz: not a snapshot"):
        spool.snapshot(4)


def test_a_missing_pytorch_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.py").write_text("")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert cli.main(["capture", "torch", str(tmp_path / "x.py")]) == 2
    assert "pip install torch==" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["missing.py"], "expected a Python script"),
        (["-o", "no/such/x.bin", "x.py"], "there is no folder"),
        (["--samples", "-1", "x.py"], "expected 0 or more"),
        (["--steps", "0", "x.py"], "expected an integer from 1"),
    ],
)
def test_wrong_arguments(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    problem: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    (tmp_path / "x.py").write_text("")
    try:
        assert cli.main(["capture", "torch", *arguments]) == 2
    except SystemExit as leave:
        assert leave.code == 2
    error = capsys.readouterr().err
    assert problem in error
    assert error.count("\n") == 1


def test_contents_have_a_budget_for_the_whole_file(tmp_path: Path) -> None:
    """The budget of sampled bytes is that of all six snapshots of fifteen storages together."""
    spool = Spool.for_trace(tmp_path / "out.bin")
    data = np.arange(50_000, dtype=np.uint32).view(np.uint8)
    for iteration in range(6):
        storages = tuple(storage_contents(f"weight {n}", "weight", data, 256 << 10) for n in range(15))
        spool.keep(SpooledSnapshot(iteration, 1.0, storages))
    for budget in (2 << 20, 256 << 10, 0):
        assemble(spool, tmp_path / "out.bin", 6, "", "", "none: ended", contents_bytes=budget)
        with open_trace(tmp_path / "out.bin") as trace:
            stored = [one.read()[1].size for snapshot in trace.snapshots for one in snapshot.contents]
            assert budget // 2 <= sum(stored) <= budget
            assert len(trace.size_maps) == 6 * 15
