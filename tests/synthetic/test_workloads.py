"""Synthetic workloads write the described traces."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import buddysim.trace as bt
from buddysim.base.errors import BuddysimError
from buddysim.synthetic import make_trace
from buddysim.synthetic.parts.hashing import below, hashed, permutation
from buddysim.synthetic.parts.sizes import pattern_classes
from buddysim.synthetic.scale import ScaleWorkload
from buddysim.synthetic.workload_classes import REGISTRY

# Settings for a short trace; a workload that isn't among them is written at its defaults.
SMALL = {
    "buddy-latency": {"footprint": "1 MiB", "hops": "100"},
    "chase": {"footprint": "64 KiB", "hops": "1000", "kernels": "2"},
    "dram-streams": {"kind": "read_2_write_1", "warps": "16", "operations": "3"},
    "l1-strides": {"stride": "3", "rounds": "2"},
    "l2-loads": {"chunks": "3", "blocks": "2"},
    "link": {"footprint": "64 KiB", "op": "copy"},
    "metadata": {"pages": "64", "entries_per_visit": "4"},
    "occupancy": {"op": "5pt", "threads": "48", "blocks": "4", "more": "8", "first": "2"},
    "random": {"operations": "100"},
    "scale": ScaleWorkload.trial,
    "sm-loads": {"footprint": "16 KiB", "blocks": "3", "warm": "16", "loads": "16"},
    "stream": {"footprint": "256 KiB"},
    "stride": {"footprint": "256 KiB"},
}


def made(tmp_path, name, **settings):
    path = tmp_path / "t.bin"
    make_trace(name, path, settings)
    return bt.open_trace(path)


def records(trace, kernel=0):
    """Return the ops and lines of a kernel, all chunks together."""
    chunks = [trace.decode_chunk(ref) for ref in trace.kernels[kernel].chunks]
    return np.concatenate([chunk.ops for chunk in chunks]), np.concatenate([chunk.lines for chunk in chunks])


def entries_of(trace, lines, allocation=0):
    return (lines >> np.uint64(8)).astype(np.int64) - trace.allocations[allocation].base // 128


@pytest.mark.parametrize("name", REGISTRY.names())
def test_every_workload_writes_a_sound_trace_with_its_provenance(tmp_path, name):
    with made(tmp_path, name, **SMALL.get(name, {})) as trace:
        assert trace.provenance.source.startswith(f"synthetic workload {name}:")
        assert trace.provenance.assumptions["contents"]
        assert all(kernel.complete for kernel in trace.kernels)
        fingerprint = trace.fingerprint
        bt.verify_trace(trace)
    with made(tmp_path, name, **SMALL.get(name, {})) as again:
        assert again.fingerprint == fingerprint


@pytest.mark.parametrize("name", REGISTRY.names())
def test_listed_defaults_are_valid_settings(name):
    kind = REGISTRY.find(name)
    rows = list(kind.parameters())
    assert all(description for _, _, description in rows)
    assert kind.from_settings({key: default for key, default, _ in rows}) == kind()


@pytest.mark.parametrize("name", REGISTRY.names())
def test_settings_that_differ_are_in_the_command(name):
    workload = REGISTRY.find(name).from_settings(SMALL.get(name, {}))
    settings = dict(setting.split("=", 1) for setting in workload.settings())
    assert REGISTRY.find(name).from_settings(settings) == workload


def test_chase_is_one_warp_whose_loads_wait_for_each_other(tmp_path):
    with made(tmp_path, "chase", footprint="64 KiB", hops="1024") as trace:
        ops, lines = records(trace)
        assert trace.kernels[0].n_blocks == 1
        assert set(ops["use_distance"]) == {1}
        assert set(ops["flags"]) == {bt.FLAG_TIMED}
        entries = entries_of(trace, lines)
    assert sorted(entries[:512]) == list(range(512))
    assert list(entries[:512]) == list(entries[512:])


def test_chase_in_strides_and_in_order(tmp_path):
    with made(tmp_path, "chase", footprint="64 KiB", stride="1 KiB", order="ascending", hops="70") as trace:
        assert list(entries_of(trace, records(trace)[1])) == [8 * (i % 64) for i in range(70)]


def test_chase_in_half_lines_warms_up_first(tmp_path):
    with made(tmp_path, "chase", footprint="2 KiB", stride="64 B", hops="64", first_hops="32") as trace:
        assert [len(records(trace, n)[0]) for n in (0, 1)] == [32, 64]
        lap = records(trace)[1] & np.uint64(0xFF)
        assert sorted(lap.tolist()) == [1] * 16 + [4] * 16


def test_every_block_of_sm_loads_reads_the_whole_set(tmp_path):
    with made(tmp_path, "sm-loads", footprint="16 KiB", blocks="2", warm="16", loads="16") as trace:
        assert [len(records(trace, n)[0]) for n in range(3)] == [2 * 8 * n for n in (8, 16, 32)]
        together = entries_of(trace, records(trace, 0)[1])
        assert set(together) == set(range(128))
        alone = entries_of(trace, records(trace, 1)[1]).reshape(2, 128)
        assert all(sorted(block) == list(range(128)) for block in alone)


def test_blocks_of_l2_loads_read_a_chunk_each(tmp_path):
    with made(tmp_path, "l2-loads", chunks="3", blocks="3") as trace:
        entries = entries_of(trace, records(trace)[1])
        assert sorted(entries) == list(range(3 * 4096))
        chunk = np.sort(entries.reshape(3, -1)[1])
        assert chunk[:129].tolist() == [*range(128, 256), 3 * 128 + 128]


@pytest.mark.parametrize(
    ("op", "loads", "lines", "masks"),
    [
        ("init", 0, [2], [0xFF, 0xFF]),
        ("triad", 2, [2, 2, 2], [15, 15, 15, 15, 0xFF, 0xFF]),
        ("3pt", 3, [3, 2, 3, 2], [8, 15, 15, 15, 15, 15, 15, 1, 0xFF, 0xFF]),
    ],
)
def test_occupancy_touches_what_its_lanes_touch(tmp_path, op, loads, lines, masks):
    with made(tmp_path, "occupancy", op=op, threads="32", blocks="2", more="1") as trace:
        ops, records_of = records(trace)
        assert ops["n_lines"][: len(lines)].tolist() == lines
        assert (ops["kind"] == bt.OP_LOAD).sum() == 2 * loads
        assert [int(line) & 0xFF for line in records_of[: sum(lines)]] == masks
        assert [trace.kernels[n].n_blocks for n in (0, 1)] == [2, 3]


@pytest.mark.parametrize(("stride", "first"), [(0, [1]), (1, [15]), (3, [15] * 3)])
def test_l1_strides_touch_a_line_for_each_word_of_stride(tmp_path, stride, first):
    with made(tmp_path, "l1-strides", stride=str(stride)) as trace:
        ops, lines = records(trace)
        assert [int(line) & 0xFF for line in lines[: ops["n_lines"][0]]] == first


@pytest.mark.parametrize(("stride", "cycles"), [(0, 1), (1, 1), (2, 2), (3, 1), (4, 4), (6, 2), (8, 8), (32, 32)])
def test_l1_strides_take_the_cycles_of_their_words(tmp_path, stride, cycles):
    """The words of a stride n lie in every gcd(n, 32)-th bank."""
    with made(tmp_path, "l1-strides", stride=str(stride)) as trace:
        ops, lines = records(trace)
        sectors = sum(int(line & 15).bit_count() for line in lines[: ops["n_lines"][0]])
        assert (-(-sectors // 4) - 1 + int(ops["flags"][0] >> bt.BANK_WORDS_SHIFT)) % 32 + 1 == cycles


@pytest.mark.parametrize(("visit", "classes"), [("largest", {7}), ("smallest", {3})])
def test_buddy_latency_visits_entries_of_one_size(tmp_path, visit, classes):
    with made(tmp_path, "buddy-latency", footprint="1 MiB", hops="3000", visit=visit) as trace:
        sizes = trace.size_maps[0].read()
        assert set(sizes[entries_of(trace, records(trace)[1])]) == classes
        assert np.bincount(sizes, minlength=8).tolist() == [0, 0, 0, 6144, 0, 0, 0, 2048]


@pytest.mark.parametrize("op", ["read", "write", "copy"])
def test_stream_touches_every_line_once(tmp_path, op):
    with made(tmp_path, "stream", op=op, footprint="512 KiB", lines_per_warp="4") as trace:
        ops, lines = records(trace)
        for index, allocation in enumerate(trace.allocations):
            inside = entries_of(trace, lines, index)
            inside = inside[(inside >= 0) & (inside < allocation.entries)]
            assert sorted(inside) == list(range(4096))
        loads = ops["kind"] == bt.OP_LOAD
        assert loads.sum() == {"read": 4096, "write": 0, "copy": 4096}[op]
        masks = lines & np.uint64(0xFF)
        assert np.array_equal(masks == 0x0F, loads)
        assert np.array_equal(masks == 0xFF, ~loads)


def test_neighbouring_warps_read_neighbouring_lines(tmp_path):
    with made(tmp_path, "stream", footprint="256 KiB", warps_per_block="4", lines_per_warp="2") as trace:
        entries = entries_of(trace, records(trace)[1])
        assert list(entries[:16]) == [0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15]


def test_stream_with_unknown_latencies_states_the_assumption(tmp_path):
    with made(tmp_path, "stream", footprint="16 KiB", gap_instructions="5", timed="false") as trace:
        assert "5 instructions" in trace.provenance.assumptions["compute_gaps"]
        assert trace.kernels[0].warp_instructions == 6 * trace.kernels[0].memory_instructions


@pytest.mark.parametrize("stride", [4, 8, 16, 32, 64, 128, 256, 384, 4096])
def test_strides_coalesce_as_lanes_do(tmp_path, stride):
    with made(tmp_path, "stride", footprint="4 MiB", stride=f"{stride} B") as trace:
        ops, lines = records(trace)
        first = lines[: int(ops["n_lines"][0])]
        base = trace.allocations[0].base
    touched: dict[int, int] = {}
    for lane in range(32):
        address = base + lane * stride
        touched[address >> 7] = touched.get(address >> 7, 0) | 1 << (address % 128 // 32)
    assert [(int(line) >> 8, int(line) & 0xFF) for line in first] == sorted(touched.items())


def test_random_instructions_have_32_different_lines_of_one_sector(tmp_path):
    with made(tmp_path, "random", operations="320", footprint="16 MiB") as trace:
        ops, lines = records(trace)
        entries = entries_of(trace, lines)
        assert set(ops["n_lines"]) == {32}
        assert entries.min() >= 0
        assert entries.max() < trace.allocations[0].entries
        assert all(len(set(row)) == 32 for row in entries.reshape(-1, 32))
        masks = (lines & np.uint64(0xFF)).astype(int)
        fractions = np.bincount(masks, minlength=9)[[1, 2, 4, 8]] / len(masks)
        assert np.all(np.abs(fractions - 0.25) < 0.02)
        assert len(np.unique(entries)) > 0.95 * len(entries)


def test_metadata_reads_no_entry_twice_and_pages_round_robin(tmp_path):
    with made(tmp_path, "metadata", pages="32", entries_per_visit="4", laps="3", blocks="2") as trace:
        entries = entries_of(trace, records(trace)[1])
    assert len(set(entries)) == len(entries) == 32 * 4 * 3
    visits = (entries // 64)[::4].reshape(2, 3, 16)
    assert all(list(lap) == list(range(16 * block, 16 * block + 16)) for block in range(2) for lap in visits[block])


def test_scale_is_as_long_as_requested_and_written_in_bounded_memory(tmp_path):
    path = tmp_path / "t.bin"
    peaks = []
    for instructions in (300_000, 1_200_000):
        tracemalloc.start()
        make_trace("scale", path, {"instructions": str(instructions), "footprint": "100 MB"})
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        with bt.open_trace(path) as trace:
            assert instructions <= sum(kernel.memory_instructions for kernel in trace.kernels) < instructions + 513
    assert peaks[1] < 1.5 * peaks[0]


def test_scale_reads_three_lines_for_each_that_it_writes(tmp_path):
    with made(tmp_path, "scale", **SMALL["scale"]) as trace:
        assert len(trace.kernels) == 3
        ops, lines = records(trace, 1)
        entries = entries_of(trace, lines)
        assert ops["kind"][:8].tolist() == [0, 0, 0, 1] * 2
        assert entries[0] == entries[3]
        assert entries.min() >= 0
        assert entries.max() < trace.allocations[0].entries


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    def broken(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(bt.TraceWriter, "end_kernel", broken)
    with pytest.raises(KeyboardInterrupt):
        make_trace("stream", tmp_path / "t.bin", {"footprint": "16 KiB"})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "settings", "problem"),
    [
        ("strem", {}, "nearest: stream"),
        ("stream", {"fotprint": "1 MiB"}, "nearest: footprint"),
        ("stream", {"footprint": "1"}, "the unit is missing"),
        ("stream", {"op": "raed"}, "nearest: read"),
        ("stride", {"stride": "20 B"}, "multiple of 128 B"),
        ("chase", {"stride": "130 B"}, "multiple of 32 B"),
        ("chase", {"sizes": "17 B"}, "not a size class"),
        ("chase", {"sizes": "16 B:0"}, "expected SIZE:ENTRIES"),
        ("metadata", {"laps": "64", "entries_per_visit": "2"}, "a page has 64"),
        ("metadata", {"warps_per_block": "3"}, "not a multiple of the 3 warps"),
        ("buddy-latency", {"sizes": "none"}, "at least two sizes"),
        ("random", {"footprint": "1 KiB"}, "4096 B to 512 GiB"),
    ],
)
def test_wrong_parameters_are_errors_of_one_line(tmp_path, name, settings, problem):
    with pytest.raises(BuddysimError) as caught:
        make_trace(name, tmp_path / "t.bin", settings)
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_patterns_repeat():
    assert pattern_classes("32 B:3, 128 B", 10).tolist() == [3, 3, 3, 7, 3, 3, 3, 7, 3, 3]


def test_pseudo_random_numbers_are_splitmix64():
    # first outputs of the generator for seed 1234567, from its authors' C code
    numbers = hashed(np.arange(3, dtype=np.uint64), 1234567)
    assert numbers.tolist() == [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert below(np.arange(1000, dtype=np.uint64), 7, 3).max() == 6
    assert sorted(permutation(100, 5)) == list(range(100))
