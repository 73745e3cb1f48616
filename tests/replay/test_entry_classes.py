"""Sizes during a run: a line has the class of the snapshot after its last writer, whenever it is written back."""

from __future__ import annotations

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import buddysim
import buddysim.trace as bt
from buddysim.buddy import ProfileOptions
from buddysim.machine import Machine
from buddysim.replay.driver import ReplayRun
from buddysim.replay.schemes import REGISTRY
from buddysim.trace import open_trace
from tests.replay.bare import TINY
from tests.replay.events import BASE, load_block, provenance
from tests.replay.test_dirty_sectors import LINE, accesses
from tests.trace.builders import records

SMALL = {**TINY, "dram.capacity": "1 GiB", "compression.fetch_whole_raw_entry": False}
ENTRIES = 256  # four times the L2


def run_of(trace: bt.Trace, machine: Machine) -> ReplayRun:
    """Run `bandwidth-compression` with readable entry states."""
    return ReplayRun(trace, machine, "bandwidth-compression", None, ProfileOptions(), trace.kernels, Fraction(1), False)


def switches(path, scheme="bandwidth-compression"):
    """Return the write-backs that made their entry larger, and those that made it smaller."""
    counters = buddysim.simulate(path, Machine.load("p100-nvlink2").with_overrides(SMALL), scheme).counters
    return counters["sizes.class_increases"], counters["sizes.class_decreases"]


def write(path, kernels, classes, copies=()):
    """Write kernels of (stream, accesses), with a snapshot of one class before, between and after them."""
    with bt.TraceWriter(path, provenance()) as writer:
        data = writer.add_allocation("data", BASE, ENTRIES * LINE)
        for number, (stream, touched) in enumerate(kernels):
            accesses(writer, [(kind, BASE + at * LINE, 15, 15 * (kind == 1)) for kind, at in touched], stream)
            for after, first, lines in copies:
                if after == number:
                    writer.memset(BASE + first * LINE, lines * LINE, 0)
        for point, known in enumerate(classes):
            snapshot = writer.add_snapshot(point, "")
            writer.add_size_map(snapshot, data, np.broadcast_to(np.asarray(known, np.uint8), ENTRIES).copy())
    return path


STORE = [(1, at) for at in range(8)]
EVICT = [(0, at) for at in range(64, 256)]


@pytest.mark.parametrize(
    ("kernels", "classes", "expected"),
    [
        ([(0, STORE + EVICT)], [3, 6], (8, 0)),  # within the kernel
        ([(0, STORE), (0, EVICT)], [3, 6, 1], (8, 0)),  # during the next one: still the class after the first
        ([(0, STORE), (0, []), (0, EVICT)], [3, 6, 1, 1], (8, 0)),
        ([(0, STORE), (0, STORE[:3] + EVICT)], [3, 6, 0], (5, 3)),  # three were written again: the last writer's
        ([(0, STORE), (0, [(2, 0), *EVICT])], [3, 6, 0], (7, 1)),  # an atomic is a writer too
        ([(0, []), (0, STORE), (0, EVICT)], [6, 0, 3, 7], (0, 8)),
    ],
)
def test_classes_of_write_backs_by_hand(tmp_path, kernels, classes, expected):
    assert switches(write(tmp_path / "t.bin", kernels, classes)) == expected


def test_a_line_that_a_copy_wrote_in_part_has_the_copys_class(tmp_path):
    kernels = [(0, STORE), (0, EVICT)]
    path = write(tmp_path / "t.bin", kernels, [3, 3, 3])
    assert switches(path) == (0, 0)
    with bt.TraceWriter(tmp_path / "u.bin", provenance()) as writer:
        data = writer.add_allocation("data", BASE, ENTRIES * LINE)
        accesses(writer, [(1, BASE, 15, 15), (1, BASE + LINE, 15, 15)])
        writer.memset(BASE, 1, 0)
        accesses(writer, [(0, BASE + at * LINE, 15, 0) for _, at in EVICT])
        for point, label, known in ((0, "", 3), (1, "after the kernel", 3), (1, "after the copy", 6)):
            writer.add_size_map(writer.add_snapshot(point, label), data, np.full(ENTRIES, known, np.uint8))
    # The copy made the entry's class 6 at once; the line keeps it, and the other line shrinks nothing.
    assert switches(tmp_path / "u.bin") == (0, 0)


entries = st.integers(0, ENTRIES - 1)
programs = st.lists(st.lists(st.tuples(st.sampled_from([0, 1, 2]), entries), max_size=80), min_size=1, max_size=4)


@given(kernels=programs, seed=st.integers(0, 99))
@settings(deadline=None, max_examples=40)
def test_entries_end_with_the_classes_of_a_reference_model(tmp_path_factory, kernels, seed):
    """The reference has no caches: after all write-backs, an entry has its last writer's class."""
    classes = np.random.default_rng(seed).integers(0, 8, (len(kernels) + 1, ENTRIES))
    flush = [(0, at) for at in range(ENTRIES)]
    path = tmp_path_factory.mktemp("reference") / "t.bin"
    write(path, [(0, kernel) for kernel in (*kernels, flush, flush)], classes)
    writer = {}
    for number, kernel in enumerate(kernels):
        writer |= {at: number for kind, at in kernel if kind}
    with open_trace(path) as trace:
        run = run_of(trace, Machine.load("p100-nvlink2").with_overrides(SMALL))
        left = run.run(None).counters["l2.dirty_sectors_at_end"]
        final = run.entry_classes.array[:ENTRIES] & 7
    assert left == 0
    expected = [classes[writer[at] + 1 if at in writer else 0][at] for at in range(ENTRIES)]
    assert final.tolist() == expected


def eight_streams(path, snapshots, shared=False):
    with bt.TraceWriter(path, provenance()) as writer:
        names = [writer.add_allocation(f"a{i}", BASE + (i << 22), 1 << 16) for i in range(8)]
        for i in range(8):
            if snapshots:
                snapshot = writer.add_snapshot(i, "")
                for number in names:
                    writer.add_size_map(snapshot, number, np.full(512, 7, np.uint8))
            writer.begin_kernel(f"k{i}", (1, 1, 1), (32, 1, 1), stream=i + 1)
            base = BASE + (0 if shared else i << 22)
            writer.add_blocks(*records([load_block(range(base, base + (1 << 15), LINE))]))
            writer.end_kernel()
    return path


def test_what_runs_at_once_depends_on_no_snapshot_and_no_scheme(tmp_path):
    times = {}
    for snapshots in (False, True):
        path = eight_streams(tmp_path / f"{snapshots}.bin", snapshots)
        for scheme in REGISTRY.names():
            result = buddysim.simulate(path, "p100-nvlink2", scheme, size_distribution="incompressible")
            assert [kernel["launch_ps"] for kernel in result.per_kernel] == [0] * 8
            times[scheme, snapshots] = result.counters["time_ps"]
    assert all(times[scheme, True] == times[scheme, False] for scheme in REGISTRY.names())
    assert times["buddy", True] == times["ideal", True]


def peak_of(path, n):
    """Return the peak memory of a run with eight streams that store to one allocation, and a snapshot per launch."""
    with bt.TraceWriter(path, provenance()) as writer:
        data = writer.add_allocation("data", BASE, n * LINE)
        for number in range(8):
            accesses(writer, [(1, BASE + (number + 9 * at) * LINE, 15, 15) for at in range(100)], number + 1)
        draw = np.random.default_rng(1)
        for point in range(9):
            writer.add_size_map(writer.add_snapshot(point, ""), data, draw.integers(0, 8, n).astype(np.uint8))
    with open_trace(path) as trace:
        tracemalloc.start()
        run = run_of(trace, Machine.load("p100-nvlink2"))
        run.run(None)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak


@pytest.mark.slow
def test_memory_is_a_byte_per_entry_however_many_snapshots_run_at_once(tmp_path):
    n = 1 << 21
    fewer, more = peak_of(tmp_path / "a.bin", n), peak_of(tmp_path / "b.bin", 2 * n)
    assert 0.99 * 17 / 16 * n <= more - fewer <= 1.01 * 17 / 16 * n  # 4 B for each page of 64 too
