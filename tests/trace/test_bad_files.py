"""Truncated, foreign and manipulated files give a clear error of one line or a valid result."""

from __future__ import annotations

import os
import resource
import struct
from collections import Counter

import pytest

import buddysim.trace as bt
from buddysim.base.errors import BuddysimError, TraceFileError
from buddysim.trace import format as fmt
from buddysim.trace.describe import describe
from tests.trace import damage
from tests.trace.builders import streaming, write_small

ROUNDS = int(os.environ.get("BUDDYSIM_FUZZ_ROUNDS", "4000"))
QUICK_ROUNDS = 800


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    return write_small(tmp_path_factory.mktemp("good") / "t.bin", 4).read_bytes()


def read_all(path):
    with bt.open_trace(path) as trace:
        describe(trace)
        if not trace.interrupted:
            return bt.verify_trace(trace)
        for kernel in trace.kernels:
            for ref in kernel.chunks:
                trace.decode_chunk(ref)
        for snapshot in trace.snapshots:
            for contents in snapshot.contents:
                contents.read()
    return None


def problem_of(path):
    with pytest.raises(BuddysimError) as caught:
        read_all(path)
    text = str(caught.value)
    assert "\n" not in text
    assert str(path) in text
    return text


def test_files_that_are_not_traces(tmp_path):
    empty, short, foreign = tmp_path / "empty.bin", tmp_path / "short.bin", tmp_path / "foreign.bin"
    empty.write_bytes(b"")
    short.write_bytes(fmt.MAGIC)
    foreign.write_bytes(b"\x7fELF" * 100)
    assert "the file is empty" in problem_of(empty)
    assert "8 bytes" in problem_of(short)
    assert "not a trace file" in problem_of(foreign)
    assert "Is a directory" in problem_of(tmp_path)
    assert "No such file" in problem_of(tmp_path / "missing.bin")
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in problem_of(tmp_path / "pipe")
    with pytest.raises(BuddysimError, match="can't read the trace file"):
        bt.open_trace("a\0b")


def test_unsupported_version_is_named(tmp_path, good):
    head = struct.pack("<8sII", fmt.MAGIC, 5, 0)
    path = tmp_path / "t.bin"
    path.write_bytes(head + struct.pack("<II", damage.crc32(head), 0) + good[24:])
    assert "format version 5.0, this program reads up to 4.0" in problem_of(path)


def test_copies_of_older_versions_have_no_stream(tmp_path):
    """A file of version 4 with copies as in version 3, and with version 3 in its head alone."""
    with bt.TraceWriter(tmp_path / "t.bin", bt.Provenance("test")) as writer:
        writer.memcpy("htod", 256, 128, stream=7, host_memory="pinned", latency_ps=5)
        writer.memset(256, 64, 1, stream=7)
    data = (tmp_path / "t.bin").read_bytes()
    with bt.open_trace(tmp_path / "t.bin") as trace:
        assert [event.stream for event in trace.events] == [7, 7]
        assert (trace.events[0].host_memory, trace.events[0].latency_ps) == ("pinned", 5)
    head = struct.pack("<8sII", fmt.MAGIC, 3, 0)
    head += struct.pack("<II", damage.crc32(head), 0)
    lengths = {b"MCPY": 32, b"MSET": 24}
    old = [(kind, payload[: lengths.get(kind, len(payload))]) for kind, payload in damage.split(data)[:-1]]
    (tmp_path / "old.bin").write_bytes(damage.join(head, old))
    with bt.open_trace(tmp_path / "old.bin") as trace:
        assert trace.events == [bt.Memcpy("htod", 256, 128), bt.Memset(256, 64, 1)]
    (tmp_path / "bad.bin").write_bytes(damage.join(head, damage.split(data)[:-1]))
    assert "56 bytes: expected 32" in problem_of(tmp_path / "bad.bin")


def test_files_of_older_versions_have_no_size_of_code(tmp_path):
    with bt.TraceWriter(tmp_path / "t.bin", bt.Provenance("test")) as writer:
        writer.begin_kernel("k", (1, 1, 1), (32, 1, 1), code_bytes=16)
        writer.end_kernel()
    head = struct.pack("<8sII", fmt.MAGIC, 2, 0)
    path = tmp_path / "t.bin"
    path.write_bytes(head + struct.pack("<II", damage.crc32(head), 0) + path.read_bytes()[24:])
    assert "it has code of 16 bytes: expected none in format version 2" in problem_of(path)


def test_a_changed_byte_anywhere_is_found(tmp_path, good):
    path = tmp_path / "t.bin"
    for at in range(0, len(good), 7):
        data = bytearray(good)
        data[at] ^= 0x10
        path.unlink(missing_ok=True)
        path.write_bytes(data)
        with pytest.raises(TraceFileError), bt.open_trace(path) as trace:
            bt.verify_trace(trace)


def test_truncated_file_keeps_complete_chunks(tmp_path):
    path, cut = tmp_path / "whole.bin", tmp_path / "cut.bin"
    with bt.TraceWriter(path, bt.Provenance("test")) as writer:
        writer.add_allocation("a", 1 << 33, 1 << 26)
        for _ in range(2):
            writer.begin_kernel("k", (2000, 1, 1), (128, 1, 1))
            writer.add_blocks(*streaming(2000, 4, 12))
            writer.end_kernel()
    data = path.read_bytes()
    with bt.open_trace(path) as trace:
        refs = [ref for kernel in trace.kernels for ref in kernel.chunks]
        whole = {ref: trace.decode_chunk(ref).lines for ref in refs}
    assert len(refs) == 6
    cuts = {at + by for at in damage.boundaries(data) for by in (-9, -1, 0, 1, 23, 24, 40)} | set(range(24, 400, 37))
    for end in sorted(cuts):
        if not 24 <= end < len(data):
            continue
        cut.write_bytes(data[:end])
        expected = [ref for ref in refs if ref.offset + 24 + ref.encoded_bytes <= end]
        with bt.open_trace(cut) as trace:
            assert trace.interrupted
            assert [ref for kernel in trace.kernels for ref in kernel.chunks] == expected
            for ref in expected[-1:]:
                assert (trace.decode_chunk(ref).lines == whole[ref]).all()
            for kernel in trace.kernels:
                assert kernel.n_blocks == sum(ref.n_blocks for ref in kernel.chunks)
                assert kernel.complete or kernel is trace.kernels[-1]
            with pytest.raises(TraceFileError, match="interrupted"):
                bt.verify_trace(trace)


def test_incomplete_contents_are_left_out(tmp_path, good):
    """A truncated file keeps the contents and size maps whose blocks are all there."""
    sections = damage.split(good)
    sizes = [i for i, (kind, _) in enumerate(sections) if kind == b"SIZE"]
    cut = tmp_path / "t.bin"
    cut.write_bytes(good[: damage.boundaries(good)[sizes[1]]])
    with bt.open_trace(cut) as trace:
        assert [size_map.compressor for size_map in trace.size_maps] == ["bpc"]


@pytest.mark.parametrize(("seed", "rounds"), [(2, QUICK_ROUNDS), pytest.param(3, ROUNDS, marks=pytest.mark.slow)])
def test_thousands_of_damaged_files(tmp_path, good, seed, rounds):
    path = tmp_path / "t.bin"
    outcomes: Counter[str] = Counter()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for data in damage.damaged_files(good, seed=seed, rounds=rounds):
        path.unlink(missing_ok=True)  # a file that is written over waits for the disk
        path.write_bytes(data)
        try:
            outcomes["interrupted" if read_all(path) is None else "valid"] += 1
        except TraceFileError as error:
            outcomes[error.section.split(" ")[0] if "\n" not in str(error) else "two lines"] += 1
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 64 << 10, f"reading small files took {grown} KiB"
    assert "two lines" not in outcomes
    reached = {"header", "index", "provenance", "allocation", "memcpy", "kernel", "end", "chunk", "contents", "size"}
    assert reached <= outcomes.keys() | {"interrupted"}, outcomes


def chunk_with(good, **changes):
    """Return the file with changed fields in the head of its first chunk, and its frame replaced by `frame`."""
    names = ("kernel", "first", "blocks", "warps", "ops", "lines", "memory", "op_shapes", "warp_shapes", "wide")
    sections = damage.split(good)[:-1]
    at = next(i for i, (kind, _) in enumerate(sections) if kind == b"CHNK")
    payload = sections[at][1]
    fields = dict(zip((*names, "instructions", "size"), fmt.CHUNK_HEAD.unpack_from(payload), strict=True))
    frame = payload[56:]
    frame = changes.pop("frame", frame)
    head = fmt.CHUNK_HEAD.pack(*(fields | changes).values())
    sections[at] = (b"CHNK", head + frame)
    damage.adapt_end(sections, at)
    return damage.join(good[:24], sections)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"kernel": 1}, "not within it"),
        ({"blocks": 0}, "0 blocks"),
        ({"ops": (1 << 24) + 1}, "too many"),
        ({"lines": (1 << 32) - 1}, "too many"),
        ({"ops": 1 << 24, "op_shapes": 1 << 24}, "its counts need"),
        ({"size": 1 << 60}, "its counts need"),
        ({"instructions": 7}, "instructions"),
        ({"frame": b""}, "cannot hold"),
        ({"frame": b"abcdefghijklmnop" * 8}, "decompressed"),
        ({"frame": b"\x28\xb5\x2f\xfd\x00"}, "content size"),
    ],
)
def test_absurd_chunks(tmp_path, good, changes, problem):
    path = tmp_path / "t.bin"
    path.write_bytes(chunk_with(good, **changes))
    assert problem in problem_of(path)


def test_a_frame_too_small_for_its_counts_is_not_decompressed(tmp_path, good):
    """A chunk may declare the format's maximum counts in a frame of a few bytes."""
    counts = {"blocks": 1 << 24, "warps": 1 << 24, "ops": 1 << 24, "lines": 1 << 26, "op_shapes": 1, "warp_shapes": 1}
    size = fmt.column_bytes(1 << 24, 1 << 24, 1 << 24, 1 << 26, 1, 1, 0)
    frame = b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", size) + b"\x03\x00\x00" * 100
    path = tmp_path / "t.bin"
    path.write_bytes(chunk_with(good, **counts, wide=0, size=size, frame=frame))
    assert "cannot hold" in problem_of(path)
