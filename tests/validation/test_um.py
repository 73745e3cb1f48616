"""``validate um``: the programs as traces, frames of each run, CPU faults, and the status of quantities."""

from __future__ import annotations

import numpy as np
import pytest

from buddysim.machine import Machine
from buddysim.trace import OP_STORE, TraceWriter, open_trace
from buddysim.validation import REGISTRY, ValidationOptions, um
from buddysim.validation.paging import cpu_faults, lanes, programs
from buddysim.validation.paging.programs import PROGRAMS
from buddysim.validation.paging.space import BLOCK, ManagedLayout, ManagedSpace
from buddysim.validation.paging.um_data import FRAME, MeasuredUmRun, load_runs
from tests.validation.stored import stored_rows, table_rows


def written(tmp_path, name, **sizes):
    path = tmp_path / f"{name}.bin"
    with TraceWriter(path, um.provenance(name)) as writer:
        for kernel in PROGRAMS[name](ManagedSpace(writer), **sizes):
            lanes.write_kernel(writer, kernel)
    return open_trace(path)


def test_measured_runs_leave_whole_frames() -> None:
    by_name = {(run.program, run.percent): run for run in load_runs()}
    assert len(by_name) == 12
    assert {name for name, _ in by_name} == set(PROGRAMS)
    assert [by_name["hotspot", percent].frames for percent in (100, 125, 150)] == [5, 3, 3]
    assert [by_name["bfs", percent].frames for percent in (100, 125, 150)] == [3, 2, 1]


def test_lanes_coalesce_into_lines_and_sectors() -> None:
    addresses = np.full((2, 32), lanes.OFF)
    addresses[0, :8] = 4096 + 4 * np.arange(8)  # a whole sector
    addresses[0, 9] = 4096 + 36  # a part of the next
    addresses[1, 3] = 4096 + 128 + 96
    store = lanes.coalesce(addresses, 4, stores=True)
    assert store.warps.tolist() == [0, 1]
    assert store.counts.tolist() == [1, 1]
    assert store.lines.tolist() == [(32 << 8) | 0x13, (33 << 8) | 0x08]
    assert (lanes.coalesce(addresses, 4, stores=False).lines & np.uint64(0xF0)).tolist() == [0, 0]


def test_kernel_has_its_instructions_in_program_order(tmp_path) -> None:
    with written(tmp_path, "fdtd", side=64, steps=2) as trace:
        assert [kernel.name for kernel in trace.kernels[:3]] == [f"fdtd_step{n}_kernel" for n in (1, 2, 3)]
        assert len(trace.kernels) == 6
        chunk = trace.decode_chunk(trace.kernels[2].chunks[0])
        assert chunk.ops["kind"][:6].tolist() == [0, 0, 0, 0, 0, 1]
        assert int(chunk.warps["n_ops"].sum()) == len(chunk.ops) == 6 * 64 * 64 // 32


def test_bfs_stores_one_cost_per_reached_node(tmp_path) -> None:
    with written(tmp_path, "bfs", nodes=5000) as trace:
        cost = next(entry for entry in trace.allocations if entry.name == "cost")
        stored = 0
        for kernel in trace.kernels[::2]:
            for ref in kernel.chunks:
                chunk = trace.decode_chunk(ref)
                for op in chunk.ops[chunk.ops["kind"] == OP_STORE]:
                    line = int(chunk.lines[op["first_line"]]) >> 8
                    stored += cost.base <= line * 128 < cost.base + cost.bytes
        assert stored > 100
        assert len(trace.kernels) % 2 == 0


def test_small_arrays_lie_in_common_va_blocks_and_large_ones_begin_them(tmp_path) -> None:
    with TraceWriter(tmp_path / "t.bin", um.provenance("t")) as writer:
        space = ManagedSpace(writer)
        sizes = (3 << 20, 100, 900 << 10, (1 << 20) - (64 << 10) + 1, 700, (1 << 20) + 1, 1 << 20)
        bases = [space.array(str(n), size) for n, size in enumerate(sizes)]
        writer.begin_kernel("k", (1, 1, 1), (32, 1, 1))
        writer.end_kernel()
    blocks = [(base - bases[0]) // BLOCK for base in bases]
    assert blocks == [0, 2, 2, 3, 2, 4, 5]
    assert bases[2] - bases[1] == 512


@pytest.mark.parametrize(("pages", "faults"), [(32, 6), (24, 6), (16, 5), (4, 3), (1, 1)])
def test_prefetch_tree_doubles_its_range_for_sequential_writes(pages: int, faults: int) -> None:
    """Of 64 KiB pages written in order, the pages 0, 1, 2, 4, 8 and 16 fault."""
    host = cpu_faults.Host()
    for page in range(pages):
        host.access(page)
    assert host.faults == faults


@pytest.mark.parametrize("name", PROGRAMS)
def test_cpu_initialises_the_arrays_of_the_traces(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The arrays have the same order and sizes; random edges are compared by their mean number.

    Instructions take most of a program's time, and have no part in its arrays.
    """
    sizes: dict[str, int] = {}
    for part in ("loads", "stores", "kernel"):
        monkeypatch.setattr(programs, part, lambda *_, **__: None)

    class Recorded(ManagedSpace):
        def array(self, name: str, size: int, written: int | None = None) -> int:
            sizes[name] = size
            return 0

    next(PROGRAMS[name](Recorded(None)))  # type: ignore[arg-type]
    arrays = cpu_faults.ON_HOST[name].arrays
    assert list(sizes) == list(arrays)
    for array, size in sizes.items():
        assert arrays[array] == (pytest.approx(size, rel=0.01) if array == "edges" else size)


def test_cpu_faults_are_within_the_range_of_the_layout() -> None:
    for run in load_runs():
        fewest, most = cpu_faults.expected_faults(cpu_faults.ON_HOST[run.program])
        assert fewest <= run.cpu_faults <= most, run


@pytest.mark.parametrize(
    ("own_block", "alignment", "fewest"),
    [(1 << 20, 512, 37), ((1 << 18) + 1, 256, 37), (1 << 20, 4096, 38), (1 << 20, 1 << 18, 38), (1 << 18, 512, 39),
     (1 << 21, 512, 33), (1 << 21, 1 << 16, 34)],
)  # fmt: skip
def test_cpu_faults_of_bfs_depend_on_common_va_blocks(own_block: int, alignment: int, fewest: int) -> None:
    """All three logs have 37 faults: more are impossible; with fewer, the result would not have been evicted."""
    assert cpu_faults.expected_faults(cpu_faults.ON_HOST["bfs"], ManagedLayout(own_block, alignment))[0] == fewest


def test_result_in_the_va_block_of_the_masks_takes_one_fault_to_read() -> None:
    """The last kernel accesses masks alone: the tree migrates their part of the block; all else is on the host."""
    program = cpu_faults.ON_HOST["bfs"]
    base = cpu_faults.array_addresses(program, ManagedLayout(1 << 21, 1 << 16))
    host = cpu_faults.initialised_host(program, base)
    masks = base["mask"] // cpu_faults.TREE_PAGE
    host.blocks[masks // cpu_faults.LEAVES][:16] = False
    assert (host.faults, cpu_faults.read_faults(host, program, base)) == (33, 1)


def test_bytes_that_differ_by_more_than_a_factor_of_two_fail() -> None:
    run = MeasuredUmRun("ra", 100, 1.0, 10, 10, 5, 12 * FRAME, 36)
    assert um.UmReplay(run, 6, 1.0, 15, 6, 5).factors == pytest.approx((1.5, 10 / 6))
    replays = [
        um.UmReplay(MeasuredUmRun(name, percent, percent / 100, 10, 10, 5, FRAME, 36), 1, percent / 50, 15, out, 5)
        for name, out in (("bfs", 10), ("fdtd", 10), ("hotspot", 30), ("ra", 21))
        for percent in (100, 125, 150)
    ]
    rows = {(row.subject, row.quantity): row for row in um.compared_quantities(replays)}
    assert rows["all runs", "programs in 2x"].status == "fail"
    assert rows["slowdowns", "rank correlation"].status == "pass"
    assert rows["hotspot 100 %", "bytes out"].status == "fail"
    assert rows["bfs 100 %", "bytes out"].status == "pass"


@pytest.mark.slow
def test_stored_table_is_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of two short programs are checked."""
    monkeypatch.setattr(um, "PROGRAMS", {name: PROGRAMS[name] for name in ("hotspot", "ra")})
    programs = ("hotspot", "ra")
    fresh, stored = (
        [row for row in rows if row[2].split()[0] in programs]
        for rows in (table_rows(um.compare(ValidationOptions()).quantities), stored_rows("um"))
    )
    assert fresh == stored


def test_other_machines_are_not_checked() -> None:
    (row,) = REGISTRY.find("um").compare(ValidationOptions("v100")).quantities
    assert row.status == "not checked"
    assert um.MACHINE in Machine.presets()
