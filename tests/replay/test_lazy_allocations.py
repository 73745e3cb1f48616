"""Large allocations in segments: equal results; memory and time grow with the touched part only."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import buddysim
import buddysim.trace as bt
from buddysim.base.errors import BuddysimError
from buddysim.machine import Machine
from buddysim.replay import lazy_allocations
from buddysim.replay.entry_classes import _CopiedRanges
from buddysim.replay.frames import FrameAllocator
from buddysim.replay.lazy_allocations import SEGMENT_ENTRIES
from buddysim.replay.schemes import REGISTRY
from buddysim.replay.segments import first_accessed
from tests.reference.replay.frame_allocator import RefFrameAllocator
from tests.replay.events import BASE, provenance
from tests.replay.test_dirty_sectors import LINE, accesses

TRACES = Path(__file__).parents[2] / "traces"
GIB = 1 << 30


def counters(path, scheme, **options):
    result = buddysim.simulate(path, "p100-nvlink2", scheme, sensitivity="none", **options)
    return dict(result.counters)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", REGISTRY.names())
@pytest.mark.parametrize("name", ["fashion-cnn", "xz"])
def test_results_in_segments_are_those_of_the_whole(monkeypatch, name, scheme):
    path = TRACES / f"{name}.bin"
    whole = counters(path, scheme)
    monkeypatch.setattr(lazy_allocations, "LARGE_ENTRIES", SEGMENT_ENTRIES)
    made = []
    allocations = lazy_allocations.LazyAllocations
    monkeypatch.setattr(allocations, "materialize_lines", _noting(allocations.materialize_lines, made))
    assert counters(path, scheme) == whole
    assert made


def _noting(method, made):
    def noted(self, lines):
        result = method(self, lines)
        made.extend(result)
        return result

    return noted


def copied_and_stored(path, entries):
    """Copies write parts of an allocation that kernels access before and after; snapshots have sizes of them."""
    draw = np.random.default_rng(2)
    with bt.TraceWriter(path, provenance()) as writer:
        data = writer.add_allocation("data", BASE + 5 * LINE, entries * LINE)
        for number in range(6):
            at = draw.integers(0, entries, 40)
            accesses(
                writer,
                [
                    (int(kind), BASE + (5 + int(n)) * LINE, 15, 15 * int(kind))
                    for n, kind in zip(at, draw.integers(0, 2, 40), strict=True)
                ],
            )
            first = int(draw.integers(0, entries - 1))
            length = int(draw.integers(1, entries - first))
            writer.memset(BASE + (5 + first) * LINE + 3, length * LINE - 3, 0)
            if number % 2:
                writer.free_allocation(data)
                data = writer.add_allocation("again", BASE + 5 * LINE, entries * LINE)
        for point in range(7):
            snapshot = writer.add_snapshot(point, "")
            for allocation in range(4):
                if point % 3 == 2:
                    pages = np.unique(draw.integers(0, entries // 64, 20)).astype(np.uint32)
                    writer.add_contents(
                        snapshot, allocation, draw.integers(0, 3, 8192 * len(pages)).astype(np.uint8), pages
                    )
                else:
                    classes = draw.integers(0, 8, entries).astype(np.uint8)
                    classes[draw.random(entries) < 0.9] = 15
                    writer.add_size_map(snapshot, allocation, classes)
    return path


@pytest.mark.parametrize("scheme", ["bandwidth-compression", "buddy", "unified-memory"])
def test_copies_and_stores_in_segments_are_those_of_the_whole(monkeypatch, tmp_path, scheme):
    path = copied_and_stored(tmp_path / "t.bin", 5 * SEGMENT_ENTRIES + 77)
    whole = counters(path, scheme)
    monkeypatch.setattr(lazy_allocations, "LARGE_ENTRIES", SEGMENT_ENTRIES)
    assert counters(path, scheme) == whole


def write_lazy_ranges(path, size, space="device", name="data"):
    """Write a trace of one allocation; a kernel reads one line and writes another."""
    with bt.TraceWriter(path, provenance()) as writer:
        writer.add_allocation(name, BASE, size, space)
        accesses(writer, [(0, BASE + size // 2 // LINE * LINE, 15, 0), (1, BASE + (size - 1) // LINE * LINE, 15, 15)])
    return path


@pytest.mark.parametrize("scheme", ["ideal", "bandwidth-compression", "pinned-host", "buddy"])
@pytest.mark.parametrize("space", ["device", "host"])
def test_sizes_are_materialized_lazily(tmp_path, scheme, space):
    path = write_lazy_ranges(tmp_path / "t.bin", 511 * GIB, space)
    machine = Machine.load("p100-nvlink2").with_overrides({"dram.capacity": "1 TiB"})
    tracemalloc.start()
    result = buddysim.simulate(path, machine, scheme, sensitivity="none", size_distribution="all-zero").counters
    peak = tracemalloc.get_traced_memory()[1] - (1 << 28) - (1 << 20)  # pages that nothing touches count there
    tracemalloc.stop()
    assert result["line_accesses"] == 2
    assert peak < 64 << 20


@pytest.mark.parametrize("page", ["4KiB", "64KiB"])
def test_pages_of_unified_memory_are_materialized_lazily(tmp_path, page):
    """Two touched pages of 511 GiB take little memory and time, although it has 134 million pages of 4 KiB."""
    path = write_lazy_ranges(tmp_path / "t.bin", 511 * GIB)
    replay = f"""
import buddysim
from buddysim.machine import Machine

machine = Machine.load("p100-nvlink2").with_overrides({{"um.page_size": "{page}"}})
result = buddysim.simulate({str(path)!r}, machine, "unified-memory", sensitivity="none")
print(result.counters["um.page_faults"], result.speed["peak_rss_bytes"])
"""
    done = subprocess.run([sys.executable, "-c", replay], capture_output=True, check=True)
    page_faults, peak_bytes = map(int, done.stdout.split())
    assert page_faults == 2  # the lower half is resident at first
    assert peak_bytes < 140 << 20


lines = st.lists(st.integers(0, 40 * 16), max_size=60)


@given(touched=lines, again=lines)
def test_first_touched_are_the_segments_of_lines_each_once(touched, again):
    bits, ranges = (
        4,
        [(32, 96, 100), (160, 176, -10), (400, 640, 0)],
    )  # first, end, what makes a segment of a line's number
    firsts, ends, offsets = (np.array(column) for column in zip(*ranges, strict=True))
    state = np.zeros(200, np.uint8)
    known: set[int] = set()
    for some in (touched, again):
        words = np.array(some, np.uint64) << np.uint64(8) | np.uint64(0xF)
        result = first_accessed(
            words, firsts.astype(np.uint64), ends.astype(np.uint64), offsets.astype(np.int64), state, bits
        )
        expected = {offset + (line >> bits) for line in some for first, end, offset in ranges if first <= line < end}
        assert result.tolist() == sorted(expected - known)
        known |= expected
    assert set(np.flatnonzero(state).tolist()) == known


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9), st.integers(0, 3)), max_size=20))
def test_of_copies_the_last_one_counts(copies):
    result, expected = _CopiedRanges(), [None] * 50
    for first, length, snapshot in copies:
        result.add(first, first + length, snapshot)
        expected[first : first + length] = [snapshot] * length
    for first, end in ((0, 50), (3, 20), (7, 8)):
        seen = [None] * 50
        for begin, stop, snapshot in result.within(first, end):
            assert first <= begin < stop <= end
            seen[begin:stop] = [snapshot] * (stop - begin)
        assert seen[first:end] == expected[first:end]


@given(steps=st.lists(st.tuples(st.integers(0, 40), st.integers(1, 200), st.booleans()), max_size=80))
def test_frames_are_those_of_the_reference_model(steps):
    frames, reference, live = FrameAllocator(), RefFrameAllocator(), []
    for page, pages, leaves in steps:
        pages = pages if pages > 150 else pages % 6 + 1
        if leaves and live:
            for each in (frames, reference):
                each.release(*live[page % len(live)])
            del live[page % len(live)]
        first = frames.allocate(page, pages)
        assert first == reference.allocate(page, pages)
        live.append((first, pages))
        assert frames.count == reference.count


def test_what_the_computer_has_no_memory_for_is_refused_first(monkeypatch, tmp_path):
    """Two lines access two segments of 4 KiB, for any size of the allocation; more lines may access every part."""
    path = write_lazy_ranges(tmp_path / "t.bin", 64 * GIB, "host")
    monkeypatch.setattr("buddysim.replay.host_memory_check.memory_available", lambda: 1 << 20)
    counters(path, "ideal")
    monkeypatch.setattr("buddysim.replay.host_memory_check.memory_available", lambda: 1 << 14)
    with pytest.raises(BuddysimError, match=r"may take 17408 B of this computer's memory: 16384 B are available"):
        counters(path, "ideal")
