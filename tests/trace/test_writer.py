"""The writer: refused calls, and the files of interrupted writers."""

from __future__ import annotations

import numpy as np
import pytest

import buddysim.trace as bt
from buddysim.base.errors import BuddysimError, TraceFileError
from tests.trace.builders import streaming, write_small

PROVENANCE = bt.Provenance("test")
BASE = 1 << 33


def test_the_same_input_gives_the_same_bytes(tmp_path):
    first, second = write_small(tmp_path / "a.bin"), write_small(tmp_path / "b.bin")
    assert first.read_bytes() == second.read_bytes()


def test_the_fingerprint_is_of_the_content(tmp_path):
    def write(name, tool, size):
        with bt.TraceWriter(tmp_path / name, bt.Provenance(tool)) as writer:
            writer.add_allocation("a", BASE, size)
        with bt.open_trace(tmp_path / name) as trace:
            return trace.fingerprint

    assert write("a", "one", 128) == write("b", "another", 128) != write("c", "one", 256)


def test_random_addresses_are_not_entropy_coded_in_a_fast_file(tmp_path):
    """Compression level 1 decodes random addresses faster; regular patterns stay small."""

    def write(name, records, level):
        with bt.TraceWriter(tmp_path / name, PROVENANCE, compression_level=level) as writer:
            writer.add_allocation("a", BASE, 1 << 34)
            writer.begin_kernel("k", (len(records[0]), 1, 1), (128, 1, 1))
            writer.add_blocks(*records)
            writer.end_kernel()
        with bt.open_trace(tmp_path / name) as trace:
            (kernel,) = trace.kernels
            lines = np.concatenate([trace.decode_chunk(ref).lines for ref in kernel.chunks])
            assert np.array_equal(lines, records[3])
            return sum(ref.encoded_bytes for ref in kernel.chunks) / len(lines)

    pattern = streaming(200)
    *records, lines = pattern
    scattered = np.random.default_rng(0).integers(0, 1 << 27, len(lines), dtype=np.uint64)
    random = (*records, (BASE >> 7) + scattered << np.uint64(8) | lines & np.uint64(255))
    assert write("random fast", random, 1) > 4 > write("random small", random, 2)
    assert write("pattern fast", pattern, 1) < 0.5


class Interrupted(Exception):
    pass


def interrupt(path, **options):
    with bt.TraceWriter(path, PROVENANCE, **options) as writer:
        writer.add_allocation("a", BASE, 1 << 24)
        writer.begin_kernel("k", (4000, 1, 1), (128, 1, 1))
        writer.add_blocks(*streaming(1000))
        raise Interrupted


def test_an_interrupted_writer_leaves_no_file(tmp_path):
    with pytest.raises(Interrupted):
        interrupt(tmp_path / "t.bin")
    assert not list(tmp_path.iterdir())


def test_an_older_file_stays_until_the_new_one_is_complete(tmp_path):
    path = write_small(tmp_path / "t.bin")
    before = path.read_bytes()
    with pytest.raises(Interrupted):
        interrupt(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["t.bin"]


def test_interrupted_capture_keeps_complete_chunks(tmp_path):
    path = tmp_path / "t.bin"
    with pytest.raises(Interrupted):
        interrupt(path, keep_part=True)
    assert not path.exists()
    with bt.open_trace(tmp_path / "t.bin.incomplete", incomplete=True) as trace:
        assert trace.interrupted
        (kernel,) = trace.kernels
        assert not kernel.complete
        assert len(kernel.chunks) == 1
        assert kernel.n_blocks == len(trace.decode_chunk(kernel.chunks[0]).blocks) > 600


def test_a_capture_can_be_read_while_it_is_written(tmp_path):
    path = tmp_path / "t.bin"
    with bt.TraceWriter(path, PROVENANCE, keep_part=True) as writer:
        writer.add_allocation("a", BASE, 128)
        with bt.open_trace(tmp_path / "t.bin.incomplete", incomplete=True) as trace:
            assert [a.name for a in trace.allocations] == ["a"]
            assert trace.interrupted
    with bt.open_trace(path) as trace:
        assert not trace.interrupted


def test_paths_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "no" / "t.bin", tmp_path / "file" / "t.bin"):
        with pytest.raises(BuddysimError, match="can't be written"):
            bt.TraceWriter(path, PROVENANCE)
    (tmp_path / "folder").mkdir()
    with pytest.raises(BuddysimError, match="is a folder"):
        bt.TraceWriter(tmp_path / "folder", PROVENANCE)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "folder"]


def test_a_full_disk():
    with pytest.raises(BuddysimError, match="No space left"), bt.TraceWriter("/dev/full", PROVENANCE, keep_part=True):
        pass


ALLOCATION = ("a", BASE, 1024)


@pytest.mark.parametrize(
    ("calls", "problem"),
    [
        ([("add_allocation", "a", BASE + 64, 128)], "not a multiple of 128"),
        ([("add_allocation", "a", BASE, 0)], "its size is 0"),
        ([("add_allocation", "a", BASE, 1 << 45)], "its size is"),
        ([("add_allocation", "a", (1 << 63) - 128, 256)], "beyond 2"),
        ([("add_allocation", "a", -128, 256)], "beyond 2"),
        ([("add_allocation", "a", BASE, 128, "texture")], "expected one of device, host"),
        ([("add_allocation", "a" * 70000, BASE, 128)], "70000 bytes"),
        ([("add_allocation", "a\0", BASE, 128)], "ends in a zero character"),
        ([("add_allocation", *ALLOCATION), ("add_allocation", "b", BASE + 896, 128)], "overlaps allocation 0"),
        ([("add_allocation", *ALLOCATION), ("add_allocation", "b", BASE - 128, 256)], "overlaps allocation 0"),
        ([("free_allocation", 0)], "no live allocation 0"),
        ([("add_allocation", *ALLOCATION), ("free_allocation", 0), ("free_allocation", 0)], "no live allocation 0"),
        ([("memcpy", "htoh", BASE, 4)], "expected one of htod"),
        ([("memcpy", "dtod", BASE, 4)], "needs its source"),
        ([("memcpy", "htod", -1, 4)], "outside 0"),
        ([("memset", BASE, 1 << 63, 0)], "outside 0"),
        ([("memset", BASE, 4, 256)], "expected 0 to 2"),
        ([("begin_kernel", "k", (0, 1, 1), (1, 1, 1))], "its grid is"),
        ([("begin_kernel", "k", (1 << 16, 1 << 16, 2), (1, 1, 1))], "its grid is"),
        ([("begin_kernel", "k", (1, 1, 1), (1 << 17, 1, 1))], "its block is"),
        ([("begin_kernel", "k", (1, 1, 1), (1, 1, 1), -1)], "registers"),
        ([("begin_kernel", "k", (1, 1, 1), (1, 1, 1), 0, 0, 1 << 64)], "stream"),
        ([("begin_kernel", "k", (1, 1, 1), (1, 1, 1)), ("memset", BASE, 4, 0)], "must be ended first"),
        ([("begin_kernel", "k", (1, 1, 1), (1, 1, 1)), ("close",)], "begun and not ended"),
        (
            [("begin_kernel", "k", (1, 1, 1), (1, 1, 1)), ("begin_kernel", "k", (1, 1, 1), (1, 1, 1))],
            "must be ended first",
        ),
        ([("end_kernel",)], "no kernel was begun"),
        ([("add_snapshot", -1)], "the launch index"),
        ([("add_contents", 0, 0, b"")], "there are 0 snapshots"),
        ([("add_snapshot", 0), ("add_contents", 0, 0, b"")], "there are 0 allocations"),
    ],
)
def test_wrong_calls_are_refused(tmp_path, calls, problem):
    path = tmp_path / "t.bin"
    writer = bt.TraceWriter(path, PROVENANCE)
    *before, (name, *arguments) = calls
    for method, *rest in before:
        getattr(writer, method)(*rest)
    with pytest.raises(TraceFileError, match=problem), writer:
        getattr(writer, name)(*arguments)
    assert not list(tmp_path.iterdir())


def test_launch_indices_rise(tmp_path):
    writer = bt.TraceWriter(tmp_path / "t.bin", PROVENANCE)
    writer.begin_kernel("k", (1, 1, 1), (1, 1, 1), launch_index=7)
    writer.end_kernel()
    with pytest.raises(TraceFileError, match="launch index is 7: expected 8"), writer:
        writer.begin_kernel("k", (1, 1, 1), (1, 1, 1), launch_index=7)


@pytest.mark.parametrize(
    ("data", "pages", "page_bytes", "problem"),
    [
        (np.zeros(19999, np.uint8), None, 8192, "19999 bytes: expected 20000"),
        (np.zeros(5000, np.float32), None, 8192, "float32"),
        (np.zeros((100, 200), np.uint8), None, 8192, "2 dimensions"),
        (np.zeros(8192, np.uint8), [2], 8192, "expected 3616"),
        (np.zeros(8192, np.uint8), [3], 8192, "outside 0 to 2"),
        (np.zeros(8192, np.uint8), [-1], 8192, "outside 0 to 2"),
        (np.zeros(16384, np.uint8), [1, 0], 8192, "do not ascend"),
        (np.zeros(16384, np.uint8), [1, 1], 8192, "do not ascend"),
        (np.zeros(20000, np.uint8), None, 100, "a multiple of 128"),
    ],
)
def test_contents_that_do_not_fit(tmp_path, data, pages, page_bytes, problem):
    writer = bt.TraceWriter(tmp_path / "t.bin", PROVENANCE)
    writer.add_allocation("a", BASE, 20000)
    writer.add_snapshot(0)
    with pytest.raises(TraceFileError, match=problem), writer:
        writer.add_contents(0, 0, data, pages, page_bytes)


@pytest.mark.parametrize(
    ("classes", "compressor", "problem"),
    [
        (np.zeros(9, np.uint8), "bpc", "expected uint8"),
        (np.zeros(8, np.int64), "bpc", "expected uint8"),
        (np.full(8, 8, np.uint8), "bpc", "is not 0 to 7 or 15"),
        (np.zeros(8, np.uint8), "a" * 17, "1 to 16"),
        (np.zeros(8, np.uint8), "", "1 to 16"),
    ],
)
def test_size_maps_that_do_not_fit(tmp_path, classes, compressor, problem):
    writer = bt.TraceWriter(tmp_path / "t.bin", PROVENANCE)
    writer.add_allocation("a", BASE, 1000)
    writer.add_snapshot(0)
    with pytest.raises(TraceFileError, match=problem), writer:
        writer.add_size_map(0, 0, classes, compressor)


def test_values_can_be_added_once(tmp_path):
    writer = bt.TraceWriter(tmp_path / "t.bin", PROVENANCE)
    writer.add_allocation("a", BASE, 1000)
    writer.add_snapshot(0)
    writer.add_size_map(0, 0, np.zeros(8, np.uint8))
    writer.add_size_map(0, 0, np.zeros(8, np.uint8), "bdi")
    with pytest.raises(TraceFileError, match="exists already"), writer:
        writer.add_size_map(0, 0, np.zeros(8, np.uint8))
