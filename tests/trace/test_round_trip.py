"""The reader returns what the writer was given."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import buddysim.trace as bt
from buddysim.base.errors import BuddysimError
from buddysim.trace import format as fmt
from buddysim.trace.blocks import concatenate, select_blocks
from tests.trace.builders import line, records, streaming, write_small

PROVENANCE = bt.Provenance("test")


def decoded(trace, kernel=0):
    chunks = [trace.decode_chunk(ref) for ref in trace.kernels[kernel].chunks]
    return concatenate([(c.blocks, c.warps, c.ops, c.lines) for c in chunks])


def assert_same(a, b):
    for left, right in zip(a, b, strict=True):
        np.testing.assert_array_equal(left, right)


def test_everything_is_read_back(tmp_path):
    path = write_small(tmp_path / "t.bin")
    with bt.open_trace(path) as trace:
        assert not trace.interrupted
        assert trace.provenance.tool == "test"
        assert trace.provenance.assumptions["compute_gaps"] == "by formula"
        data, scratch, host = trace.allocations
        assert (data.alloc_event, data.free_event, scratch.free_event, host.space) == (0, None, 3, "host")
        assert scratch.entries == 8
        assert data.live_at(5)
        assert not scratch.live_at(3)
        assert [type(e).__name__ for e in trace.events] == (
            ["Memcpy", "Memset", "KernelLaunch", "KernelLaunch", "KernelLaunch", "Memcpy", "Memcpy", "Memset"]
        )
        assert trace.events[0] == bt.Memcpy("htod", 1 << 33, data.bytes // 3, 1 << 40)
        assert trace.events[-1] == bt.Memset(1 << 33, 64, None, 2)
        first, second, empty = trace.kernels
        assert (first.launch_index, second.launch_index, empty.launch_index) == (0, 5, 6)
        assert (second.grid, second.block, second.stream, first.registers) == ((16, 2, 1), (64, 2, 1), 7, 32)
        part = streaming(16)
        assert_same(decoded(trace), part)
        ops, warps = part[2], part[1]
        assert first.warp_instructions == len(ops) + int(ops["gap_instructions"].sum()) + int(
            warps["tail_gap_instructions"].sum()
        )
        assert first.memory_instructions == first.line_accesses == len(ops)
        assert (first.code_bytes, second.code_bytes) == (0, 1040)
        assert second.n_blocks == 4
        assert len(empty.chunks) == 0
        assert empty.warp_instructions == 0
        before, after = trace.snapshots
        assert (before.launch_index, after.launch_index, after.label) == (0, 6, "after")
        pages, whole = before.read(1)
        assert pages is None
        assert len(whole) == 1000
        pages, sampled = after.read(0)
        assert list(pages[:3]) == [0, 2, 4]
        assert not sampled.any()
        sizes, bdi = trace.size_maps
        assert (sizes.snapshot, sizes.allocation, sizes.compressor, bdi.compressor) == (1, 0, "bpc", "bdi")
        every = sizes.read()
        assert len(every) == data.entries
        assert (every[::5] == 15).all()
        np.testing.assert_array_equal(sizes.read(17, 100), every[17:117])


def test_the_file_does_not_depend_on_the_batches(tmp_path):
    part = streaming(3000, 4, 12)
    files = []
    for step in (3000, 700, 17):
        path = tmp_path / f"{step}.bin"
        with bt.TraceWriter(path, PROVENANCE) as writer:
            writer.begin_kernel("k", (3000, 1, 1), (128, 1, 1))
            for first in range(0, 3000, step):
                writer.add_blocks(*select_blocks(part, first, min(first + step, 3000)))
            writer.end_kernel()
        files.append(path.read_bytes())
        with bt.open_trace(path) as trace:
            assert all(ref.n_ops <= fmt.CHUNK_OPS for ref in trace.kernels[0].chunks)
            assert_same(decoded(trace), part)
    assert files[0] == files[1] == files[2]


def test_a_block_larger_than_a_chunk_stays_whole(tmp_path):
    part = concatenate([streaming(1, 4, 12000), streaming(2, 1, 5)])
    part[0]["block"] = [4, 5, 6]
    with bt.TraceWriter(tmp_path / "t.bin", PROVENANCE) as writer:
        writer.begin_kernel("k", (10, 1, 1), (128, 1, 1))
        writer.add_blocks(*part)
        writer.end_kernel()
    with bt.open_trace(tmp_path / "t.bin") as trace:
        assert [ref.n_ops for ref in trace.kernels[0].chunks] == [48000, 10]
        assert_same(decoded(trace), part)


@pytest.mark.parametrize(
    ("records_of", "problem"),
    [
        (lambda: records([(16, [])]), "block 0: its number lies outside"),
        (lambda: records([(0, [({"warp": 4}, [])])]), "warp 0: its number lies outside"),
        (lambda: records([(0, [({}, [({"kind": 0}, [])])])]), "a barrier has no line"),
        (lambda: records([(0, [({}, [({"kind": 3}, [line(0)])])])]), "a barrier has no line"),
        (lambda: records([(0, [({}, [({"kind": 4}, [line(0)])])])]), "its kind"),
        (lambda: records([(0, [({}, [({"kind": 0}, [line(0)] * 65)])])]), "1 to 64"),
        (lambda: records([(0, [({}, [({"kind": 1}, [line(0, 0)])])])]), "sector mask"),
        (lambda: records([(0, [({}, [({"kind": 1}, [line(0, 1, 2)])])])]), "sector mask"),
        (lambda: records([(0, [({}, [({"kind": 0}, [line(0, 1, 1)])])])]), "by a load"),
    ],
)
def test_contradictory_records_are_refused(tmp_path, records_of, problem):
    path = tmp_path / "t.bin"
    writer = bt.TraceWriter(path, PROVENANCE)
    writer.begin_kernel("k", (16, 1, 1), (128, 1, 1))
    with pytest.raises(BuddysimError, match=problem), writer:
        writer.add_blocks(*records_of())
    assert not list(tmp_path.iterdir())


# Names of allocations: trailing zero bytes are padding.
NAMES = st.text(max_size=5).filter(lambda name: not name.endswith("\0"))
STREAMS = st.integers(0, 3) | st.just((1 << 64) - 1)
ACTIONS = st.one_of(
    st.tuples(st.just("allocate"), NAMES, st.integers(0, 7), st.integers(1, 300)),
    st.tuples(st.just("free"), st.integers(0, 7)),
    st.tuples(st.just("memset"), st.integers(0, 1 << 40), st.integers(0, 99), st.none() | st.integers(0, 255), STREAMS),
    st.tuples(
        st.just("memcpy"),
        st.sampled_from(fmt.MEMCPY_KINDS),
        st.integers(0, 1 << 62),
        st.integers(0, 99),
        STREAMS,
        st.sampled_from(fmt.HOST_MEMORIES),
        st.none() | st.integers(1, fmt.MAX_COPY_LATENCY_PS),
    ),
    st.tuples(st.just("kernel"), st.text(max_size=5), st.integers(1, 5), st.integers(0, 3)),
    st.tuples(st.just("snapshot"), st.integers(0, 9), st.text(max_size=5)),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(ACTIONS, max_size=20))
def test_any_order_of_events(tmp_path_factory, actions):
    """Allocations at eight addresses, copies, fills, launches and snapshots are read in the order of their events."""
    path = tmp_path_factory.mktemp("events") / "t.bin"
    events, allocations, snapshots, launch_indices = [], [], [], []
    at = {}  # index of the live allocation by position
    with bt.TraceWriter(path, PROVENANCE) as writer:
        for kind, *what in actions:
            if kind == "allocate" and what[1] not in at:
                name, position, size = what
                at[position] = writer.add_allocation(name, position * 512, size)
                allocations.append([name, position * 512, size, len(events), None])
            elif kind == "free" and what[0] in at:
                allocation = at.pop(what[0])
                writer.free_allocation(allocation)
                allocations[allocation][-1] = len(events)
            elif kind == "memset":
                writer.memset(*what[:3], stream=what[3])
                events.append(bt.Memset(*what))
            elif kind == "memcpy":
                source = 7 if what[0] == "dtod" else None
                *copied, stream, host_memory, latency_ps = what
                writer.memcpy(*copied, source, stream=stream, host_memory=host_memory, latency_ps=latency_ps)
                events.append(bt.Memcpy(*copied, source, stream, host_memory, latency_ps))
            elif kind == "kernel":
                name, width, skip = what
                launch_indices.append(launch_indices[-1] + 1 + skip if launch_indices else skip)
                kernel = writer.begin_kernel(name, (width, 2, 3), (4, width, 1), launch_index=launch_indices[-1])
                writer.end_kernel()
                events.append(bt.KernelLaunch(kernel))
            elif kind == "snapshot":
                writer.add_snapshot(*what)
                snapshots.append(tuple(what))
    with bt.open_trace(path) as trace:
        assert trace.events == events
        assert [[a.name, a.base, a.bytes, a.alloc_event, a.free_event] for a in trace.allocations] == allocations
        assert [(s.launch_index, s.label) for s in trace.snapshots] == snapshots
        assert [kernel.launch_index for kernel in trace.kernels] == launch_indices
