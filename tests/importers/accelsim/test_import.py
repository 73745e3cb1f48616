"""Whole imports: counts of real traces, every tracer version, values, allocations, events."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import buddysim.trace as bt
from buddysim.cli import main
from buddysim.compress import entry_classes
from buddysim.compress.compressors import size_map_algorithms
from buddysim.importers.accelsim import AccelsimImportOptions, AccelsimImportSummary, SnapshotFile, import_accelsim
from tools.archive import folder_with

HERE = Path(__file__).parent
MEMORY = 0x7F0000000000


def imported(
    kernelslist: Path, tmp_path: Path, options: AccelsimImportOptions | None = None
) -> tuple[bt.Trace, AccelsimImportSummary]:
    """Return the verified trace of a kernelslist."""
    summary = import_accelsim(kernelslist, tmp_path / "out.bin", options)
    trace = bt.open_trace(tmp_path / "out.bin")
    bt.verify_trace(trace)
    return trace, summary


def all_ops(trace: bt.Trace) -> list[tuple[int, int, int, list[int]]]:
    """Return kind, flags, bytes per lane and lines of every operation."""
    results = []
    for kernel in trace.kernels:
        for ref in kernel.chunks:
            chunk = trace.decode_chunk(ref)
            for op in chunk.ops:
                words = chunk.lines[op["first_line"] : op["first_line"] + op["n_lines"]].tolist()
                results.append((int(op["kind"]), int(op["flags"]), int(op["bytes_per_lane"]), words))
    return results


# Warp instructions, lane instructions, memory lines and sectors as counted by the simulator that the traces come from.
REAL = {
    "bfs-volta": (154_839, 1_207_402, 38_584, 90_629),
    "vectoradd-ampere": (26_601, 801_056, 4_689, 18_750),
    "matmul-pascal": (4_416, 139_264, 1_440, 384),
}

#: Of the kernels: 16 B behind the last instruction; Pascal's are shorter, and not told.
CODE = {"bfs-volta": {208, 448, 784}, "vectoradd-ampere": {272}, "matmul-pascal": {0}}


@pytest.mark.parametrize("name", REAL)
def test_counts_of_real_traces(name: str, tmp_path: Path) -> None:
    with folder_with(HERE / "data" / f"{name}.tar.xz", "kernelslist.g") as folder:
        trace, summary = imported(folder / "kernelslist.g", tmp_path)
    counts = summary.counts
    results = (counts["warp_instructions"], counts["lane_instructions"], counts["memory_lines"], counts["sectors"])
    assert results == REAL[name]
    assert sum(kernel.warp_instructions for kernel in trace.kernels) == counts["warp_instructions"]
    assert sum(kernel.line_accesses for kernel in trace.kernels) == counts["lines"]
    sectors = sum(bin(word & 15).count("1") for _, _, _, words in all_ops(trace) for word in words)
    assert sectors == counts["sectors"]
    assert {kernel.code_bytes for kernel in trace.kernels} == CODE[name]
    assert str(counts["warp_instructions"]) in trace.provenance.assumptions["counts"]


def test_bfs_has_its_copies_and_an_allocation_for_each(tmp_path: Path) -> None:
    with folder_with(HERE / "data" / "bfs-volta.tar.xz", "kernelslist.g") as folder:
        trace, _ = imported(folder / "kernelslist.g", tmp_path)
    copies = [event for event in trace.events if isinstance(event, bt.Memcpy)]
    assert len(copies) == 14
    assert len(trace.kernels) == 16
    assert [kernel.launch_index for kernel in trace.kernels] == list(range(16))
    assert [(a.base & 0xFFFFF, a.bytes) for a in trace.allocations] == [
        (0x00000, 32768), (0x08000, 98304), (0x20000, 4096), (0x21000, 4096), (0x22000, 4096), (0x23000, 16384),
        (0x27000, 128),
    ]  # fmt: skip
    assert "no cudaMalloc" in trace.provenance.assumptions["allocations"]


def test_adjacent_arrays_are_separate_allocations(tmp_path: Path) -> None:
    with folder_with(HERE / "data" / "vectoradd-ampere.tar.xz", "kernelslist.g") as folder:
        trace, _ = imported(folder / "kernelslist.g", tmp_path)
    assert [a.name.split()[0] for a in trace.allocations] == ["copied", "copied", "touched"]
    assert trace.allocations[2].bytes == -(-200_000 // 128) * 128


@pytest.mark.parametrize("version", ["v1", "v1_2", "v2"])
def test_versions_with_block_and_warp_before_each_instruction(version: str, tmp_path: Path) -> None:
    trace, summary = imported(HERE / "samples" / version / "kernelslist.g", tmp_path)
    assert summary.counts["predicated_off"] == 1
    assert [(a.name.split()[0], a.base, a.bytes) for a in trace.allocations] == [
        ("cudaMalloc", MEMORY, 1024),
        ("cudaMalloc", MEMORY + 0x400, 512),
    ]
    assert "cudaMalloc records" in trace.provenance.assumptions["allocations"]
    assert [getattr(event, "kind", "kernel") for event in trace.events] == ["htod", "kernel", "dtoh"]
    load = [(MEMORY >> 7) << 8 | 0xF, ((MEMORY >> 7) + 1) << 8 | 0xF]
    generic = [(bt.OP_LOAD, 2, 4, load[:1])] if version == "v2" else []  # without bases it counts as shared memory
    first, second = (MEMORY + 0x400) >> 7, (MEMORY + 0x480) >> 7
    assert all_ops(trace) == [
        (bt.OP_LOAD, 2, 8, load),
        *generic,
        (bt.OP_STORE, 2, 4, [first << 8 | 0x1]),
        (bt.OP_STORE, 2, 4, [first << 8 | 0x4, second << 8 | 0x1]),
    ]


def test_version_6_carries_values(tmp_path: Path) -> None:
    trace, _ = imported(HERE / "samples" / "v6" / "kernelslist.g", tmp_path)
    ops = all_ops(trace)
    assert [(kind, flags) for kind, flags, _, _ in ops] == [
        (bt.OP_LOAD, 2),
        (bt.OP_LOAD, 2),
        (bt.OP_STORE, 2),
        (bt.OP_LOAD, 2 | bt.FLAG_BYPASS_L1),
        (bt.OP_ATOMIC, 2 | bt.FLAG_NO_RETURN),
        (bt.OP_ATOMIC, 2 | bt.FLAG_NO_RETURN),
        (bt.OP_ATOMIC, 2),
    ]
    assert [s.launch_index for s in trace.snapshots] == [0, 1]
    _, before = trace.snapshots[0].read(0)
    _, after = trace.snapshots[1].read(0)
    assert before.view(np.uint32).tolist() == [7] * 64  # the copied bytes
    assert after.view(np.uint32).tolist() == [7] * 32 + [9] * 32  # loads confirm, the store changes
    maps = {(m.snapshot, m.allocation): m.read().tolist() for m in trace.size_maps}
    assert maps[1, 0] == entry_classes(after).tolist()
    assert (1, 1) not in maps  # two words of the other allocation are known, no whole entry


@pytest.mark.parametrize("sample", ["raw", "raw_cores"])
def test_raw_traces_are_regrouped_and_async_copies_counted_once(sample: str, tmp_path: Path) -> None:
    trace, summary = imported(HERE / "samples" / sample / "kernelslist", tmp_path)
    assert summary.counts["warp_instructions"] == 16
    assert summary.counts["barriers"] == 1
    (ref,) = trace.kernels[0].chunks
    chunk = trace.decode_chunk(ref)
    assert chunk.blocks["block"].tolist() == [0, 1]
    assert chunk.warps["warp"].tolist() == [0, 1]
    assert chunk.ops["kind"].tolist() == [bt.OP_LOAD, bt.OP_LOAD, bt.OP_BARRIER, bt.OP_LOAD]
    assert chunk.ops["n_lines"].tolist() == [4, 2, 0, 4]
    # the first group is waited for by "all but one", the second by "all"
    assert chunk.ops["use_distance"].tolist() == [4, 3, 0, 2]


def test_store_data_becomes_contents_and_size_maps(tmp_path: Path) -> None:
    trace, _ = imported(HERE / "samples" / "fork" / "kernelslist.g", tmp_path)
    assert [s.launch_index for s in trace.snapshots] == [1, 2]
    first = trace.snapshots[0].read(0)[1].view(np.uint32)
    second = trace.snapshots[1].read(0)[1].view(np.uint32)
    assert first.tolist() == [1] * 32
    assert second.tolist() == [5] + [1] * 31
    other = next(a for a in trace.allocations if a.base == MEMORY + 0x100)
    assert other.index not in {m.allocation for m in trace.size_maps}  # none of its entries is known completely


def test_values_of_every_width_and_type(tmp_path: Path) -> None:
    from buddysim.importers.accelsim.image import MemoryImage
    from buddysim.importers.accelsim.kernel_file import KernelTrace

    image = MemoryImage()
    with KernelTrace(HERE / "samples" / "fork" / "kernel-1.traceg", image=image) as kernel:
        list(kernel.records())
    data, known = image.read(MEMORY + 0x100, 0x20)
    assert data[:16].view(np.uint32).tolist() == [0x11223344, 0x99AABBCC, 0x55667788, 0xDDEEFF00]
    assert data[0x10] == 0xFE
    assert data[0x14:0x18].view(np.float32)[0] == 1.5
    assert data[0x18:].view(np.float64)[0] == -0.25
    assert known.tolist() == [True] * 17 + [False] * 3 + [True] * 12


def test_local_memory_is_interleaved_if_included(tmp_path: Path) -> None:
    text = (HERE / "samples" / "fork" / "kernel-2.traceg").read_text().split("#BEGIN_TB")[0]
    addresses = "0x00007e0000fffc00"
    text += (
        "#BEGIN_TB\nthread block = 0,0,0\nwarp = 0\ninsts = 2\n"
        f"0000 ffffffff 0 STL.64 2 R1 R4 8 1 {addresses} 0 0\n"
        f"0010 00000003 1 R4 LDL 1 R1 4 1 {addresses} 0 0\n#END_TB\n"
    )
    (tmp_path / "kernel-1.traceg").write_text(text)
    (tmp_path / "kernelslist.g").write_text("kernel-1.traceg\n")
    trace, summary = imported(tmp_path / "kernelslist.g", tmp_path, AccelsimImportOptions(include_local=True))
    store, load = all_ops(trace)
    assert [word & 0xFF for word in store[3]] == [0xFF, 0xFF]  # two words of 32 threads each
    assert [word & 0xFF for word in load[3]] == [0x01]
    assert load[3][0] >> 8 == store[3][0] >> 8
    assert summary.counts["local_lines"] == 2
    (tmp_path / "kernelslist.g").write_text("kernel-1.traceg\nkernel-1.traceg\n")
    trace, _ = imported(tmp_path / "kernelslist.g", tmp_path)
    assert all_ops(trace) == []
    assert [kernel.warp_instructions for kernel in trace.kernels] == [2, 2]


def test_snapshots_from_files(tmp_path: Path) -> None:
    file = tmp_path / f"{MEMORY:#x}.bin"
    file.write_bytes(bytes(range(256)) * 4)
    options = AccelsimImportOptions(snapshots=[SnapshotFile(file, MEMORY, 1)])
    trace, _ = imported(HERE / "samples" / "v1" / "kernelslist.g", tmp_path, options)
    assert [s.launch_index for s in trace.snapshots] == [1]
    assert trace.snapshots[0].read(0)[1].tobytes() == file.read_bytes()


def test_missing_kernels_keep_their_launch_indices(tmp_path: Path) -> None:
    kernel = HERE / "samples" / "v1" / "kernel-1.traceg"
    (tmp_path / "kernel-2.traceg").write_text(kernel.read_text())
    (tmp_path / "kernel-3.traceg").write_text(kernel.read_text().split("#BEGIN_TB")[0])
    (tmp_path / "kernelslist.g").write_text("kernel-1.traceg\nkernel-2.traceg\nkernel-3.traceg\nMemset,1,2\n\n")
    trace, summary = imported(tmp_path / "kernelslist.g", tmp_path, AccelsimImportOptions(skip_missing=True))
    assert [kernel.launch_index for kernel in trace.kernels] == [1]
    assert len(summary.warnings) == 3
    assert "kernel-1.traceg is missing" in " ".join(summary.warnings)


@pytest.mark.parametrize("name", size_map_algorithms())
def test_size_maps_are_of_the_compressor_chosen(name: str, tmp_path: Path) -> None:
    file = tmp_path / f"{MEMORY:#x}.bin"
    file.write_bytes(bytes(range(256)) * 4)
    output = tmp_path / "out.bin"
    listed = HERE / "samples" / "v1" / "kernelslist.g"
    arguments = ["--snapshot", f"{file}@1", "--compressor", name, "-o", str(output)]
    assert main(["import", "accelsim", str(listed), *arguments]) == 0
    trace = bt.open_trace(output)
    assert {size_map.compressor for size_map in trace.size_maps} == {name}
    expected = entry_classes(file.read_bytes(), name).tolist()
    assert trace.size_maps[0].read().tolist()[: len(expected)] == expected
