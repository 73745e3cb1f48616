"""Snapshots of programs that the reference model serves: replayed, every event has the recorded outcome."""

from __future__ import annotations

import pickle
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError
from buddysim.training.caching_allocator import AllocatorSettings
from buddysim.training.caching_allocator.snapshot.event_replay import compare_events
from buddysim.training.caching_allocator.snapshot.initial_state import state_before
from buddysim.training.caching_allocator.snapshot.lifetimes import lifetimes_of_snapshot, peak_contents
from buddysim.training.caching_allocator.snapshot.read import read_snapshot
from tests.training.caching_allocator.recorded import BACKWARD, FORWARD, OPTIMIZER, SETUP, RecordedAllocator

MIB = 1 << 20
SIZES = st.one_of(st.integers(1, 3 * MIB), st.integers(1, 50).map(lambda count: count * MIB))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("serve"), SIZES, st.sampled_from([0, 0, 0, 5])),
        st.tuples(st.sampled_from(["give", "give", "request"]), st.integers(0, 30), st.just(0)),
        st.tuples(st.just("release"), st.just(0), st.just(0)),
    ),
    min_size=1,
    max_size=50,
)


def recorded(text: str, capacity: int | None, steps: list[tuple[str, int, int]]) -> RecordedAllocator:
    allocator = RecordedAllocator(AllocatorSettings.parse(text), capacity)
    live: list[int] = []
    for action, number, stream in steps:
        if action == "serve":
            address = allocator.serve(number, stream)
            if address is not None:
                live.append(address)
        elif action == "release":
            allocator.release()
        elif live:
            address = live.pop(number % len(live))
            allocator.give(address, complete=action == "give")
    return allocator


@pytest.mark.parametrize("text", ["", "max_split_size_mb:32", "expandable_segments:True"])
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(  # the record begins between a segment of another stream and its block
    steps=[("serve", 1, 0)] * 3 + [("serve", 1, 5), ("give", 3, 0), ("release", 0, 0)], capacity=None, dropped=5
)
@example(  # half of the pages of one `segment_map` are unmapped
    steps=[("serve", 21 * MIB, 0), ("serve", MIB + 1, 0), ("give", 0, 0), ("release", 0, 0)], capacity=None, dropped=0
)
@given(steps=STEPS, capacity=st.sampled_from([None, 200 * MIB]), dropped=st.integers(0, 40))
def test_every_event_has_the_recorded_outcome(
    text: str, steps: list[tuple[str, int, int]], capacity: int | None, dropped: int, tmp_path: Path
) -> None:
    allocator = recorded(text, capacity, steps)
    dropped = min(dropped, len(allocator.trace) - 1)
    if dropped < 0:
        return
    result = compare_events(read_snapshot(allocator.dump(tmp_path / "one.pickle", dropped)))
    assert result.contradictions == 0
    assert not result.differences, result
    assert result.equal_blocks == result.blocks
    assert result.compared.total() == sum(entry["action"] != "oom" for entry in allocator.trace[dropped:])


def two_segments() -> RecordedAllocator:
    """12 MiB and 30 MiB, freed and served again: 30 by the smaller of the two that fit."""
    allocator = RecordedAllocator(AllocatorSettings())
    addresses = [allocator.serve(size * MIB) for size in (30, 40, 30)]
    for address in addresses:
        assert address is not None
        allocator.give(address)
    allocator.serve(28 * MIB)
    return allocator


def block_entry(address: int, size: int, requested: int) -> dict[str, object]:
    state = "active_allocated" if requested else "inactive"
    return {"address": address, "size": size, "requested_size": requested, "state": state}


def test_another_block_is_one_difference(tmp_path: Path) -> None:
    """The run that took 28 MiB from the block of 40 MiB did not take the best fit."""
    allocator = two_segments()
    content = allocator.snapshot()
    blocks = {entry["total_size"]: entry for entry in content["segments"]}
    trace = content["device_traces"][0]
    taken, larger = trace[-1]["addr"], blocks[40 * MIB]["address"]
    trace[-1]["addr"] = larger
    for segment in content["segments"]:
        start = segment["address"]
        if start == taken:
            segment["blocks"] = [block_entry(start, 30 * MIB, 0)]
        elif start == larger:
            segment["blocks"] = [
                block_entry(start, 28 * MIB, 28 * MIB),
                block_entry(start + 28 * MIB, 12 * MIB, 0),
            ]
    path = tmp_path / "other.pickle"
    path.write_bytes(pickle.dumps(content))
    result = compare_events(read_snapshot(path))
    assert result.differences == {"another block": 1}
    assert result.examples == [(len(trace) - 1, "another block")]
    assert result.equal_blocks == result.blocks


def test_other_settings_are_differences(tmp_path: Path) -> None:
    """With blocks of over 32 MiB unsplit, 4 MiB don't come from the 40 that are cached."""
    allocator = RecordedAllocator(AllocatorSettings())
    address = allocator.serve(40 * MIB)
    assert address is not None
    allocator.give(address)
    allocator.serve(4 * MIB)
    snapshot = read_snapshot(allocator.dump(tmp_path / "one.pickle"))
    assert not compare_events(snapshot).differences
    other = compare_events(snapshot, AllocatorSettings.parse("max_split_size_mb:32"))
    assert other.differences == {"a segment where the run has a cached block": 1}


def test_a_record_without_its_beginning_is_completed_from_the_end(tmp_path: Path) -> None:
    allocator = two_segments()
    whole = read_snapshot(allocator.dump(tmp_path / "whole.pickle"))
    part = read_snapshot(allocator.dump(tmp_path / "part.pickle", dropped=8))
    assert len(part.events) == len(whole.events) - 8
    before = state_before(part)
    assert sum(segment.size for segment in before.segments) == 100 * MIB
    assert sum(len(segment.blocks) for segment in before.segments) == 2
    assert compare_events(part).peak_reserved == compare_events(whole).peak_reserved == 100 * MIB


def test_a_record_that_is_not_whole_is_said(tmp_path: Path) -> None:
    allocator = two_segments()
    content = allocator.snapshot()
    del content["device_traces"][0][7]  # a free that is completed
    path = tmp_path / "cut.pickle"
    path.write_bytes(pickle.dumps(content))
    assert compare_events(read_snapshot(path)).contradictions > 0


def test_kinds_follow_from_phase_and_lifetime(tmp_path: Path) -> None:
    """A weight of 3 MiB, 5 saved and 2 temporary, a gradient of 3, a state of 4: the peak is in the optimizer."""
    allocator = RecordedAllocator(AllocatorSettings())

    def serve(size: int, frames: object) -> int:
        address = allocator.serve(size * MIB, frames=frames)
        assert address is not None
        return address

    serve(3, SETUP)
    saved = serve(5, FORWARD)
    allocator.give(serve(2, FORWARD))
    gradient = serve(3, BACKWARD)
    allocator.give(serve(6, BACKWARD))
    allocator.give(saved)
    serve(4, OPTIMIZER)
    allocator.give(serve(8, OPTIMIZER))
    allocator.give(gradient)
    snapshot = read_snapshot(allocator.dump(tmp_path / "one.pickle"))
    contents = peak_contents(lifetimes_of_snapshot(snapshot, state_before(snapshot)))
    assert contents.phase == "optimizer"
    assert {kind: size // MIB for kind, size in contents.by_kind.items() if size} == {
        "weights and inputs": 3, "gradients": 3, "optimizer state": 4, "temporaries": 8,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "content: expected a table of names and values, got []"),
        ({}, "device_traces"),
        ({"device_traces": [], "segments": []}, "device_traces"),
        ({"device_traces": [[]], "segments": []}, "no record"),
        ({"device_traces": [[3]], "segments": []}, "event 0"),
        ({"device_traces": [[{"action": "grow"}]], "segments": []}, "event 0: action: expected one of alloc, "),
        ({"device_traces": [[{"action": "alloc", "addr": -1, "size": 3}]], "segments": []}, "addr: expected at least"),
        ({"device_traces": [[{"action": "alloc", "addr": 1 << 60, "size": 3}]], "segments": []}, "addr"),
        ({"device_traces": [[{"action": "oom", "size": 3}]], "segments": [{"address": 4}]}, "total_size"),
        ({"device_traces": [[{"action": "oom", "size": 3, "stream": "x"}]], "segments": []}, "stream"),
    ],
)
def test_what_is_no_snapshot_gets_one_line(content: object, message: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.pickle"
    path.write_bytes(pickle.dumps(content))
    with pytest.raises(BuddysimError) as error:
        read_snapshot(path)
    assert message in str(error.value)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_block_that_was_not_split_is_known_by_what_is_served_behind_it(tmp_path: Path) -> None:
    """9.5 MiB hold 10 of a segment of 30, as half a MiB isn't split off; then 20 are served behind the 10."""
    allocator = RecordedAllocator(AllocatorSettings())

    def serve(tenths: int) -> int:
        address = allocator.serve(tenths * MIB // 10)
        assert address is not None
        return address

    allocator.give(serve(300))
    first, second = serve(100), serve(200)
    allocator.give(first)
    unsplit = serve(95)
    allocator.give(second)
    begin = len(allocator.trace)
    assert serve(200) == unsplit + 10 * MIB
    allocator.give(unsplit)
    result = compare_events(read_snapshot(allocator.dump(tmp_path / "one.pickle", begin)))
    assert result.assumed == 1
    assert not result.differences
    assert result.equal_blocks == result.blocks


def test_a_stack_of_many_events_is_read_once(tmp_path: Path) -> None:
    """A file of some kB may name a stack of 400 frames a hundred thousand times, by references."""
    frames = [{"name": "forward" * 9, "filename": "x" * 99, "line": number} for number in range(400)]
    events = [{"action": "alloc", "addr": number << 9, "size": 512, "frames": frames} for number in range(500)]
    path = tmp_path / "x.pickle"
    path.write_bytes(pickle.dumps({"device_traces": [events * 200], "segments": []}))
    before = time.process_time()
    assert len(read_snapshot(path).events) == 100_000
    assert time.process_time() - before < 3  # read for each event: 30 s


def test_segments_with_one_list_of_blocks_are_refused(tmp_path: Path) -> None:
    blocks = [{"size": 512, "state": "inactive"}] * 1000
    segments = [{"address": number << 20, "total_size": 512_000, "blocks": blocks} for number in range(1000)]
    path = tmp_path / "x.pickle"
    event = {"action": "alloc", "addr": 0, "size": 512}
    path.write_bytes(pickle.dumps({"device_traces": [[event]], "segments": segments}))
    with pytest.raises(BuddysimError, match="segment 1: blocks: another segment has the same list"):
        read_snapshot(path)
