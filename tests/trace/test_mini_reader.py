"""A reader written from docs/reference/trace-format.md alone reads the same as the package."""

from __future__ import annotations

import struct

import numpy as np
import pytest

import buddysim.trace as bt
from tests.trace import mini_reader
from tests.trace.builders import line, records, streaming, write_small


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Write a file that uses every column and every kind of section."""
    path = tmp_path_factory.mktemp("mini") / "t.bin"
    write_small(path)
    return path


def of_type(data, section_type):
    return [payload for kind, payload in mini_reader.sections(data) if kind == section_type]


def test_small_sections(path):
    data = path.read_bytes()
    with bt.open_trace(path) as trace:
        provenance = mini_reader.texts(of_type(data, b"PROV")[0])
        assert provenance["tool"] == trace.provenance.tool
        assert provenance["assumptions.compute_gaps"] == trace.provenance.assumptions["compute_gaps"]
        for payload, allocation in zip(of_type(data, b"ALOC"), trace.allocations, strict=True):
            base, size, space = struct.unpack_from("<QQB", payload)
            assert (base, size, ("device", "host")[space]) == (allocation.base, allocation.bytes, allocation.space)
            assert payload[24:].rstrip(b"\0").decode() == allocation.name
        copies = [event for event in trace.events if isinstance(event, bt.Memcpy)]
        for payload, copy in zip(of_type(data, b"MCPY"), copies, strict=True):
            address, size, source, kind, known, *queued = struct.unpack("<QQQBB6xQQB7x", payload)
            assert (address, size, source if known else None) == (copy.address, copy.bytes, copy.source)
            assert ("htod", "dtoh", "dtod")[kind] == copy.kind
            host_memory = (None, "pageable", "pinned").index(copy.host_memory)
            assert queued == [copy.stream, copy.latency_ps or 0, host_memory]
        fills = [event for event in trace.events if isinstance(event, bt.Memset)]
        for payload, fill in zip(of_type(data, b"MSET"), fills, strict=True):
            address, size, value, known, stream = struct.unpack("<QQBB6xQ", payload)
            assert bt.Memset(address, size, value if known else None, stream) == fill
        for payload, kernel in zip(of_type(data, b"KERN"), trace.kernels, strict=True):
            launch_index, stream, shared, *grid_block, registers, code = struct.unpack_from("<QQQ6III", payload)
            assert (launch_index, stream, shared) == (kernel.launch_index, kernel.stream, kernel.shared_memory_bytes)
            assert (*grid_block, registers, code) == (*kernel.grid, *kernel.block, kernel.registers, kernel.code_bytes)
            assert payload[56:].decode() == kernel.name
        for payload, kernel in zip(of_type(data, b"KEND"), trace.kernels, strict=True):
            counts = (kernel.warp_instructions, kernel.memory_instructions, kernel.line_accesses, kernel.n_blocks)
            assert struct.unpack("<QQQQI4x", payload) == (*counts, len(kernel.chunks))
        for payload, snapshot in zip(of_type(data, b"SNAP"), trace.snapshots, strict=True):
            assert (*struct.unpack_from("<Q", payload), payload[8:].decode()) == (snapshot.launch_index, snapshot.label)


def as_mini(chunk):
    """Return a decoded chunk as the mini reader does."""
    warps = {}
    for block in chunk.blocks:
        for warp in chunk.warps[block["first_warp"] : block["first_warp"] + block["n_warps"]]:
            ops = []
            for op in chunk.ops[warp["first_op"] : warp["first_op"] + warp["n_ops"]]:
                lines = chunk.lines[op["first_line"] : op["first_line"] + op["n_lines"]]
                ops.append(
                    (
                        tuple(op)[1:],
                        [(int(value) >> 8 << 7, int(value) & 15, int(value) >> 4 & 15) for value in lines],
                    )
                )
            tail = [
                warp[name]
                for name in (
                    "tail_gap_instructions",
                    "tail_critical_path_cycles",
                    "tail_critical_path_hops",
                    "tail_unit_busy_slots",
                )
            ]
            warps[int(block["block"]), int(warp["warp"])] = (ops, tail)
    return warps


def test_chunks(tmp_path):
    rng = np.random.default_rng(3)
    random_numbers = rng.integers(0, 1 << 56, 3)
    everything = {
        name: 1 + i
        for i, name in enumerate(("gap_instructions", "critical_path_cycles", "critical_path_hops", "use_distance"))
    }
    everything |= {"use_cycles": 9, "use_hops": 300, "kind": 2, "bytes_per_lane": 8, "flags": 7}
    odd = records(
        [
            (
                70,
                [
                    (
                        {"warp": 1, "tail_critical_path_cycles": 5},
                        [(everything, [line(int(n) << 7, 7, 2) for n in random_numbers])],
                    )
                ],
            ),
            (
                3,
                [
                    ({"warp": 0, "tail_critical_path_hops": 4, "tail_unit_busy_slots": 70_000}, []),
                    ({"warp": 2}, [({"kind": 3, "gap_instructions": 1 << 31}, [])]),
                ],
            ),
        ]
    )
    many = streaming(30, 2, 20)
    many[2]["gap_instructions"][:] = np.arange(len(many[2])) % 300  # more shapes than a one-byte index can name
    path = tmp_path / "t.bin"
    with bt.TraceWriter(path, bt.Provenance("test")) as writer:
        for part in (odd, many):
            writer.begin_kernel("k", (100, 1, 1), (128, 1, 1))
            writer.add_blocks(*part)
            writer.end_kernel()
    chunks = [mini_reader.chunk(payload) for payload in of_type(path.read_bytes(), b"CHNK")]
    with bt.open_trace(path) as trace:
        for mini, kernel in zip(chunks, trace.kernels, strict=True):
            assert mini["kernel"] == kernel.index
            assert mini["warps"] == as_mini(trace.decode_chunk(kernel.chunks[0]))
            counts = (kernel.warp_instructions, kernel.memory_instructions, kernel.line_accesses, kernel.n_blocks)
            assert mini["counts"] == counts


def test_values(path):
    data = path.read_bytes()
    with bt.open_trace(path) as trace:
        expected = [contents.read() for snapshot in trace.snapshots for contents in snapshot.contents]
        sizes = [trace.allocations[contents.allocation].bytes for s in trace.snapshots for contents in s.contents]
        for payload, size, (pages, values) in zip(of_type(data, b"CONT"), sizes, expected, strict=True):
            numbers, stored_bytes = mini_reader.contents(payload, size)
            assert stored_bytes == values.tobytes()
            assert pages is None or numbers == list(pages)
        for payload, size_map in zip(of_type(data, b"SIZE"), trace.size_maps, strict=True):
            assert mini_reader.size_map(payload) == (size_map.compressor, 0, list(size_map.read()))
