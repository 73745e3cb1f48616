"""Size classes of a part of an allocation equal those of the whole, whichever entries are known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import buddysim.trace as bt
from buddysim.buddy import SizeSource
from buddysim.buddy.distribution import Distribution
from buddysim.buddy.profiler import COUNTED_ENTRIES, observe, profile
from buddysim.replay import simulation
from tests.trace.builders import write_small

BASE = 1 << 33


@st.composite
def cases(draw):
    """Generate the entries of an allocation, the entries that a snapshot has, and parts of them."""
    entries = draw(st.integers(1, 700))
    what = draw(st.sampled_from(["size map", "sparse size map", "whole", "pages", "nothing", "unknown"]))
    firsts = draw(st.lists(st.integers(0, entries - 1), min_size=1, max_size=8))
    parts = [(first, draw(st.integers(1, entries - first))) for first in firsts]
    return entries, what, draw(st.integers(0, 2**20)), parts


@given(cases())
@settings(max_examples=150, deadline=None)
def test_parts_are_those_of_the_whole(tmp_path_factory, case):
    entries, what, seed, parts = case
    draw = np.random.default_rng(seed)
    path = tmp_path_factory.mktemp("known") / "t.bin"
    with bt.TraceWriter(path, bt.Provenance("test")) as writer:
        data = writer.add_allocation("data", BASE, entries * 128)
        snapshot = writer.add_snapshot(0, "")
        values = draw.integers(0, 3, entries * 128).astype(np.uint8)
        if what == "whole":
            writer.add_contents(snapshot, data, values)
        elif what == "pages":
            n_pages = -(-entries // 64)
            pages = np.unique(draw.integers(0, n_pages, 3)).astype(np.uint32)
            data_of = [values[page * 8192 : (page + 1) * 8192] for page in pages.astype(int)]
            writer.add_contents(snapshot, data, np.concatenate(data_of), pages)
        elif what != "nothing":
            classes = draw.integers(0, 8, entries).astype(np.uint8)
            if what != "size map":
                classes[draw.random(entries) < (2 if what == "unknown" else 0.97)] = 15
            writer.add_size_map(snapshot, data, classes)
    with bt.open_trace(path) as trace:
        source = SizeSource(trace, seed=seed)
        whole = np.full(entries, 0x0A, np.uint8)
        taken = source.write_classes(0, 0, whole, 4)
        assert source.taken_from_neighbours(0, 0) == taken
        for first, count in parts:
            part = np.full(count, 0x0A, np.uint8)
            source.write_part(0, 0, first, part, 4)
            assert part.tolist() == whole[first : first + count].tolist()


@pytest.mark.parametrize("name", ["isca20-hpc", "isca20-dl", "uniform:32"])
def test_expected_counts_are_those_of_samples_on_average(name):
    distribution, entries = Distribution.load(name), 1 << 20
    for seed in range(3):
        sampled, expected = (count(seed, 5, entries) for count in (distribution.counts, distribution.expected_counts))
        assert sampled.sum() == expected.sum() == entries
        assert np.abs(sampled - expected).max() <= 0.01 * entries
        assert sampled.argmax() == expected.argmax()


def test_large_allocation_has_expected_counts(tmp_path):
    sizes = (1 << 44, 1 << 20)
    with bt.TraceWriter(tmp_path / "t.bin", bt.Provenance("test")) as writer:
        for number, size in enumerate(sizes):
            writer.add_allocation("data", BASE + (number << 50), size)
    with bt.open_trace(tmp_path / "t.bin") as trace:
        profiled = profile(trace)
        distribution = Distribution.load("isca20-hpc")
        assert profiled.rows[0].entries > COUNTED_ENTRIES
        assert profiled.rows[0].counts[0].tolist() == distribution.expected_counts(0, 0, sizes[0] // 128).tolist()
        assert profiled.rows[1].counts[0].tolist() == distribution.counts(0, 1, sizes[1] // 128).tolist()
        assert profiled.ratio_range is not None


def test_parts_of_the_last_pages(tmp_path):
    with bt.open_trace(write_small(tmp_path / "t.bin")) as trace:
        source = SizeSource(trace)
        for allocation in trace.allocations:
            whole = np.zeros(allocation.entries, np.uint8)
            source.write_classes(0, allocation.index, whole)
            part = np.zeros(1, np.uint8)
            source.write_part(0, allocation.index, allocation.entries - 1, part)
            assert part[0] == whole[-1]


@pytest.mark.parametrize("name", ["isca20-hpc", "isca20-dl", "all-zero"])
def test_counts_of_several_allocations_are_those_of_each(name):
    distribution = Distribution.load(name)
    allocations = [(7, 1), (0, 3), (9, (1 << 20) + 5), (8, 1 << 20), (1, 640), (2, 1)]
    expected = [distribution.counts(3, *each).tolist() for each in allocations]
    assert distribution.counts_of_each(3, allocations).tolist() == expected
    assert distribution.counts_of_each(3, []).shape == (0, 8)


def test_a_trace_is_looked_at_once_for_all_seeds(tmp_path, monkeypatch):
    path, looked = tmp_path / "t.bin", []
    with bt.TraceWriter(path, bt.Provenance("test")) as writer:
        writer.add_allocation("data", BASE, 1 << 20)
    monkeypatch.setattr(simulation, "observe", lambda *given: looked.append(given) or observe(*given))
    profiled = simulation.simulate(path)
    with bt.open_trace(path) as trace:
        assert (profiled.synthetic["min_ratio"], profiled.synthetic["max_ratio"]) == profile(trace).ratio_range
    assert len(looked) == 1
