"""Contents and size maps can be read in any range, block by block."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import buddysim.trace as bt
from buddysim.trace import format as fmt

PROVENANCE = bt.Provenance("test")


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_contents_are_read_back(tmp_path_factory, data):
    size = data.draw(st.one_of(st.integers(1, 3000), st.integers(1 << 20, 3 << 20)))
    page_bytes = data.draw(st.sampled_from([128, 4096, 8192, 1 << 20]))
    n_pages = -(-size // page_bytes)
    sampled = data.draw(st.booleans())
    every = np.random.default_rng(size).integers(0, 4, size).astype(np.uint8)
    pages = None
    expected = every
    if sampled:
        few = data.draw(st.sets(st.integers(0, n_pages - 1), max_size=20))
        step = data.draw(st.integers(1, 50))
        pages = np.array(sorted(few | set(range(0, n_pages, step)) if few else few), np.uint32)
        expected = np.concatenate([every[:0], *(every[p * page_bytes : (p + 1) * page_bytes] for p in pages)])
    path = tmp_path_factory.mktemp("values") / "t.bin"
    with bt.TraceWriter(path, PROVENANCE) as writer:
        writer.add_allocation("a", 0, size)
        writer.add_snapshot(3, "label")
        writer.add_contents(0, 0, expected, pages, page_bytes)
    with bt.open_trace(path) as trace:
        bt.verify_trace(trace)
        (contents,) = trace.snapshots[0].contents
        stored_pages, stored_bytes = contents.read()
        np.testing.assert_array_equal(stored_bytes, expected)
        if sampled:
            np.testing.assert_array_equal(stored_pages, pages)
            np.testing.assert_array_equal(contents.pages, pages)
        else:
            assert stored_pages is None
            assert contents.pages is None
        assert contents.sampled_fraction == pytest.approx(1 if pages is None else len(pages) / n_pages)
        assert all(len(part) <= fmt.CONTENTS_BLOCK_BYTES for _, part in contents.blocks())


@pytest.fixture(scope="module")
def size_map(tmp_path_factory):
    n = 2 * fmt.SIZE_MAP_BLOCK_ENTRIES + 1001
    classes = np.random.default_rng(0).choice(np.array([0, 1, 2, 3, 4, 5, 6, 7, 15], np.uint8), n)
    path = tmp_path_factory.mktemp("sizes") / "t.bin"
    with bt.TraceWriter(path, PROVENANCE) as writer:
        writer.add_allocation("a", 0, n * 128 - 5)
        writer.add_snapshot(0)
        writer.add_size_map(0, 0, classes)
    with bt.open_trace(path) as trace:
        yield trace.size_maps[0], classes


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_window_of_a_size_map(size_map, data):
    sizes, classes = size_map
    edge = st.sampled_from([0, 1, fmt.SIZE_MAP_BLOCK_ENTRIES - 1, fmt.SIZE_MAP_BLOCK_ENTRIES, len(classes)])
    first = data.draw(st.one_of(edge, st.integers(0, len(classes))))
    end = data.draw(st.one_of(edge, st.integers(0, len(classes))).filter(lambda end: end >= first))
    np.testing.assert_array_equal(sizes.read(first, end - first), classes[first:end])


def test_windows_outside_a_size_map(size_map):
    sizes, classes = size_map
    np.testing.assert_array_equal(sizes.read(), classes)
    np.testing.assert_array_equal(sizes.read(len(classes) - 3), classes[-3:])
    for first, count in ((-1, 2), (0, len(classes) + 1), (len(classes) + 1, None)):
        with pytest.raises(IndexError):
            sizes.read(first, count)


def test_a_snapshot_without_the_allocation(tmp_path):
    with bt.TraceWriter(tmp_path / "t.bin", PROVENANCE) as writer:
        writer.add_snapshot(0)
    with bt.open_trace(tmp_path / "t.bin") as trace, pytest.raises(KeyError):
        trace.snapshots[0].read(0)
