"""Verification finds wrong references and counts that show only in decoded chunks."""

from __future__ import annotations

import struct

import pytest

import buddysim.trace as bt
from buddysim.base.errors import TraceFileError
from tests.trace import damage
from tests.trace.builders import line, records, streaming, write_small

PROVENANCE = bt.Provenance("test")
BASE = 1 << 33


def problem_of(path):
    with bt.open_trace(path) as trace, pytest.raises(TraceFileError) as caught:
        bt.verify_trace(trace)
    return str(caught.value)


def test_a_good_file(tmp_path):
    with bt.open_trace(write_small(tmp_path / "t.bin")) as trace:
        seen = []
        summary = bt.verify_trace(trace, seen.append)
        assert (summary.allocations, summary.events, summary.kernels, summary.chunks, summary.blocks) == (
            3,
            8,
            3,
            2,
            20,
        )
        assert summary.memory_instructions == summary.line_accesses == 772
        assert (summary.snapshots, summary.size_map_entries) == (2, 2304 + 32)
        assert seen == sorted(seen)


def write_touching(path, *lines, size=1000, kind=0):
    with bt.TraceWriter(path, PROVENANCE) as writer:
        writer.add_allocation("before", BASE - 4096, 1024)
        writer.add_allocation("a", BASE, size)
        writer.begin_kernel("k", (9, 1, 1), (32, 1, 1))
        ops = [({"kind": 3}, []), ({"kind": 1}, [line(BASE)]), ({"kind": 3}, []), ({"kind": kind}, list(lines))]
        writer.add_blocks(*records([(2, [({}, [])]), (7, [({}, ops)])]))
        writer.end_kernel()
    return path


@pytest.mark.parametrize(
    ("touched", "inside"),
    [
        (line(BASE + 896, 15), True),  # the last sector has the last 8 bytes
        (line(BASE + 1024), False),
        (line(BASE - 128), False),
        (line(BASE - 4096), True),
        (line(0), False),
        (line((1 << 63) - 128), False),
    ],
)
def test_lines_in_allocations(tmp_path, touched, inside):
    path = write_touching(tmp_path / "t.bin", line(BASE), touched)
    if inside:
        with bt.open_trace(path) as trace:
            bt.verify_trace(trace)
    else:
        problem = problem_of(path)
        assert f"op 3 of warp 0 of block 7 touches the line at {touched >> 8 << 7:#x}" in problem
        assert "chunk 0 of kernel 0" in problem


def test_sectors_beyond_the_end_of_an_allocation(tmp_path):
    with bt.open_trace(write_touching(tmp_path / "t.bin", line(BASE + 896, 1), size=920)) as trace:
        bt.verify_trace(trace)
    assert "lies in no live allocation" in problem_of(write_touching(tmp_path / "t.bin", line(BASE + 896, 3), size=920))


def test_accesses_outside_an_allocations_lifetime_are_errors(tmp_path):
    path = tmp_path / "t.bin"
    for late in (False, True):
        with bt.TraceWriter(path, PROVENANCE) as writer:
            if not late:
                writer.free_allocation(writer.add_allocation("a", BASE, 1 << 20))
            writer.begin_kernel("k", (4, 1, 1), (128, 1, 1))
            writer.add_blocks(*streaming(4, base=BASE))
            writer.end_kernel()
            if late:
                writer.add_allocation("a", BASE, 1 << 20)
        assert "lies in no live allocation" in problem_of(path)


@pytest.mark.parametrize(
    "event",
    [
        ("memcpy", "htod", BASE, 1025),
        ("memcpy", "dtoh", BASE - 1, 2),
        ("memcpy", "dtod", BASE, 4, BASE + 1024),
        ("memset", 0, 1, 0),
        ("memset", BASE + (1 << 20) - 4, 8, 0),  # spans two adjacent allocations
    ],
)
def test_events_outside_allocations(tmp_path, event):
    with bt.TraceWriter(tmp_path / "t.bin", PROVENANCE) as writer:
        writer.add_allocation("a", BASE, 1024)
        writer.add_allocation("b", BASE + (1 << 20) - 1024, 1024)
        writer.add_allocation("c", BASE + (1 << 20), 1024)
        name, *arguments = event
        getattr(writer, name)(*arguments)
    assert f"event 0 ({name})" in problem_of(tmp_path / "t.bin")


def write_blocks(path, *parts):
    with bt.TraceWriter(path, PROVENANCE) as writer:
        writer.begin_kernel("k", (100, 1, 1), (128, 1, 1))
        for part in parts:
            writer.add_blocks(*records(part))
        writer.end_kernel()
    return path


def test_duplicate_blocks_and_warps_are_found(tmp_path):
    path = tmp_path / "t.bin"
    with bt.open_trace(write_blocks(path, [(5, []), (3, [({"warp": 2}, []), ({"warp": 0}, [])])], [(9, [])])) as trace:
        bt.verify_trace(trace)
    assert "block 3 is in the kernel a second time" in problem_of(write_blocks(path, [(3, []), (5, []), (3, [])]))
    twice = [(5, []), (3, [({"warp": 2}, []), ({"warp": 0}, []), ({"warp": 2}, [])])]
    assert "block 3 has a warp twice" in problem_of(write_blocks(path, twice))


def test_duplicate_blocks_are_found_across_chunks(tmp_path):
    with bt.TraceWriter(tmp_path / "t.bin", PROVENANCE) as writer:
        writer.add_allocation("a", BASE, 1 << 24)
        writer.begin_kernel("k", (2000, 1, 1), (128, 1, 1))
        for _ in range(2):
            writer.add_blocks(*streaming(1000, 4, 12))
        writer.end_kernel()
    assert "is in the kernel a second time" in problem_of(tmp_path / "t.bin")


@pytest.mark.parametrize(("at", "layout"), [(24, "<I"), (40, "<Q")])
def test_counts_of_a_chunk_that_differ_from_its_records(tmp_path, at, layout):
    data = write_small(tmp_path / "t.bin").read_bytes()
    sections = damage.split(data)[:-1]
    chunk = next(i for i, (kind, _) in enumerate(sections) if kind == b"CHNK")
    payload = bytearray(sections[chunk][1])
    struct.pack_into(layout, payload, at, 5)
    sections[chunk] = (b"CHNK", bytes(payload))
    damage.adapt_end(sections, chunk)
    (tmp_path / "t.bin").write_bytes(damage.join(data[:24], sections))
    assert "its head says" in problem_of(tmp_path / "t.bin")
