"""Selection of snapshots, PoCL's program binaries, messages, and bytes reserved in the provenance."""

from __future__ import annotations

import functools
import itertools
import operator
import socket
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError, TraceFileError
from buddysim.capture.opencl.programs import bitcode_of
from buddysim.capture.opencl.snapshots import Candidates, Reason
from buddysim.capture.opencl.wire import MessageType, messages
from buddysim.capture.snapshot_selection import select_first_to_last
from buddysim.compress import entry_classes
from buddysim.trace import Provenance, TraceWriter, open_trace, verify_trace


@given(st.integers(1, 500), st.integers(2, 20))
def test_selected_snapshots_ascend_and_have_both_ends(n: int, count: int) -> None:
    selected = select_first_to_last(list(range(n)), count)
    assert len(selected) == min(n, count)
    assert selected == sorted(set(selected))
    assert (selected[0], selected[-1]) == (0, n - 1)
    steps = {b - a for a, b in itertools.pairwise(selected)}
    assert not steps or max(steps) - min(steps) <= 1


KIB = 1024
PAGE = 8 * KIB


def empty(most: int, contents_every: int = 1) -> Candidates:
    return Candidates(most, contents_every, entry_classes)


def taken(candidates: Candidates, point: int, reasons: Reason = Reason.PERIODIC, buffer: int = 0) -> None:
    candidates.begin(point, reasons)
    candidates.add(buffer, 0, memoryview(bytes([point % 251]) * 100))
    candidates.end()


def test_every_second_candidate_is_dropped_at_the_limit() -> None:
    candidates = empty(4)
    for point in range(5):
        taken(candidates, point)
    assert [one.launch_index for one in candidates.taken] == [0, 2, 4]
    assert [candidates.contents(one, 0)[0] for one in candidates.taken] == [0, 2, 4]  # type: ignore[index]


def test_perhaps_last_snapshot_is_dropped_at_next_launch() -> None:
    candidates = empty(4)
    taken(candidates, 0)
    taken(candidates, 1, Reason.LAST)
    assert [one.launch_index for one in candidates.select(10)] == [0, 1]
    candidates.launched()
    assert [one.launch_index for one in candidates.select(10)] == [0]


def test_snapshots_around_launches_stay_next_to_periodic_ones() -> None:
    candidates = empty(4)
    periodic, around = {0, 2, 4, 6}, {3, 4, 5}
    for point in sorted(periodic | around):
        reasons = [Reason.PERIODIC] * (point in periodic) + [Reason.AROUND_LAUNCH] * (point in around)
        taken(candidates, point, functools.reduce(operator.or_, reasons))
    selected = candidates.for_file(4)
    assert [one.launch_index for one in selected] == [0, 2, 3, 4, 5, 6]
    assert {one.launch_index for one in selected if one.of_run} == periodic
    assert {one.launch_index for one in selected if one.contents.buffers} == periodic
    assert [candidates.sizes(one.sizes, 0).tolist() for one in selected] == [
        entry_classes(np.full(100, one.launch_index, np.uint8)).tolist() for one in selected
    ]
    assert [one.launch_index for one in candidates.for_file(2)] == [0, 3, 4, 5, 6]
    assert [one.launch_index for one in candidates.for_file(0)] == [3, 4, 5]


def test_a_buffer_released_before_a_launch_is_in_the_snapshot_before_it() -> None:
    candidates = empty(2)
    taken(candidates, 7, Reason.AROUND_LAUNCH | Reason.LAST, buffer=1)
    taken(candidates, 7, Reason.AROUND_LAUNCH, buffer=0)
    candidates.launched()
    (selected,) = candidates.for_file(2)
    assert set(selected.sizes.buffers) == {0, 1}
    assert candidates.contents(selected.contents, 1) is None
    assert len(candidates.sizes(selected.sizes, 1)) == 1


@pytest.mark.parametrize("every", [0, 1, 3, 128, 200])
def test_sizes_are_of_all_bytes_and_contents_of_every_nth_page(every: int) -> None:
    generator = np.random.default_rng(5)
    data = generator.integers(0, 256, (3 << 20) + 5 * KIB, np.uint8)
    data[1 << 20 : 2 << 20] = data[: 1 << 20]  # an equal piece, of which other pages are kept
    data[300 * KIB : 600 * KIB] = 0
    candidates = empty(4, every)
    candidates.begin(0, Reason.PERIODIC)
    candidates.add(0, 0, memoryview(data[: 2 << 20].tobytes()))
    candidates.add(0, 2 << 20, memoryview(data[2 << 20 :].tobytes()))
    candidates.end()
    (one,) = candidates.taken
    assert np.array_equal(candidates.sizes(one, 0), entry_classes(data))
    contents = candidates.contents(one, 0)
    if not every:
        assert contents is None
        return
    pages = [data[at : at + PAGE] for at in range(0, len(data), every * PAGE)]
    assert np.array_equal(contents, np.concatenate(pages))


def test_bitcode_of_pocls_binaries() -> None:
    code = b"BC\xc0\xde" + bytes(12)
    assert bitcode_of(code) == code
    assert bitcode_of(b"poclbin..../program.bc" + struct.pack("<I", len(code)) + code + b"more") == code
    for bad in (b"", b"\x7fELF", b"poclbin", b"poclbin/program.bc\xff\0\0\0BC\xc0\xde"):
        with pytest.raises(BuddysimError):
            bitcode_of(bad)


def test_truncated_message_is_left_out() -> None:
    receiver, sender = socket.socketpair()
    whole = struct.pack("<IIQQ", MessageType.FREE, 0, 8, 5)
    sender.sendall(whole + struct.pack("<IIQQ", MessageType.NAME, 0, 20, 1) + b"abc")
    sender.close()
    received = list(messages(receiver))
    receiver.close()
    assert [(one.type, one.numbers) for one in received] == [(MessageType.FREE, (5,))]


def test_a_provenance_is_replaced_at_the_end(tmp_path: Path) -> None:
    path, provenance = tmp_path / "a.bin", Provenance("tool", assumptions={"compute_gaps": "none: all"})
    with TraceWriter(path, provenance, keep_part=True, reserved_provenance_bytes=100) as writer:
        writer.add_allocation("a", 0, 128)
        ended = replace(provenance, assumptions={"compute_gaps": "none: all", "end": "killed"})
        writer.replace_provenance(ended)
        with pytest.raises(TraceFileError, match="expected at most"):
            writer.replace_provenance(replace(provenance, source="long " * 100))
        snapshot = writer.add_snapshot(0)
        writer.add_contents(snapshot, 0, np.zeros(128, np.uint8))
    with open_trace(path) as trace:
        verify_trace(trace)
        assert trace.provenance == ended


def test_an_allocation_is_renamed_once_its_name_is_known(tmp_path: Path) -> None:
    path = tmp_path / "t.bin"
    with TraceWriter(path, Provenance("tool"), keep_part=True) as writer:
        for number in range(3):
            writer.add_allocation(f"buffer {number}", number << 20, 128, reserved_name_bytes=16)
        writer.memset(0, 128, 0)
        writer.rename_allocation(1, "kernel.argument")
        writer.rename_allocation(2, "ä name that is too long")
    with open_trace(path) as trace:
        verify_trace(trace)
        names = [allocation.name for allocation in trace.allocations]
    assert names == ["buffer 0", "kernel.argument", "ä name that is "]
