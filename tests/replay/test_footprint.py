"""Memory of a run's allocations over time, and the check against capacities."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import buddysim
import buddysim.trace as bt
from buddysim.base.errors import BuddysimError
from buddysim.buddy import TARGET, Targets
from buddysim.machine import Machine
from buddysim.replay.footprint import check_capacity, footprint_of
from buddysim.replay.schemes import REGISTRY
from tests.replay.events import BASE, load_block, provenance
from tests.trace.builders import records

MIB = 2**20
ZERO, RAW = 0, 7
P100 = Machine.load("p100-nvlink2")


def write(path: Path, steps: Sequence[tuple]) -> Path:
    """Write steps `("+", name, MiB, size class)`, `("-", name)`, `("kernel", loads of name, n)`, `("fill", name)`."""
    with bt.TraceWriter(path, provenance()) as writer:
        live: dict[str, tuple[int, int]] = {}
        snapshot = writer.add_snapshot(0)
        for number, (what, *arguments) in enumerate(steps):
            name = arguments[0]
            if what == "+":
                base, size = BASE + (number << 30), arguments[1] * MIB
                live[name] = writer.add_allocation(name, base, size), base
                writer.add_size_map(snapshot, live[name][0], np.full(size // 128, arguments[2], np.uint8))
            elif what == "-":
                writer.free_allocation(live.pop(name)[0])
            elif what == "fill":
                writer.memset(live[name][1], 128, 0)
            else:
                writer.begin_kernel(f"reads {name}", (1, 1, 1), (32, 1, 1))
                first = live[name][1]
                writer.add_blocks(*records([load_block(range(first, first + 128 * arguments[1], 128))]))
                writer.end_kernel()
    return path


ZEROS_THEN_RAW = [
    ("+", "zeros", 40, ZERO),
    ("kernel", "zeros", 1),
    ("-", "zeros"),
    ("+", "raw", 30, RAW),
    ("kernel", "raw", 1),
]


def machine(capacity: str, **overrides: object) -> Machine:
    return P100.with_overrides({"dram.capacity": capacity, "sm.count": 2, **overrides})


def test_what_is_allocated_last_must_fit_too(tmp_path):
    """40 MiB of zeros take 10 MiB and are freed; then 30 MiB that do not compress follow."""
    path = write(tmp_path / "t.bin", ZEROS_THEN_RAW)
    message = (
        f"{path}: device memory of p100-nvlink2: the targets need {30 * MIB} B at event 1, "
        f"before kernel 1 (reads raw), there are {16 * MIB} B: {14 * MIB} B too much"
    )
    with pytest.raises(BuddysimError) as error:
        buddysim.simulate(path, machine("16 MiB"))
    assert str(error.value) == message
    counters = buddysim.simulate(path, machine("30 MiB")).counters
    assert counters["footprint.allocated_bytes"] == 40 * MIB
    assert counters["footprint.device_bytes"] == 30 * MIB
    assert counters["compression.ratio"] == 40 / 30
    assert counters["compression.max_ratio"] == 4


def test_bandwidth_compression_needs_capacity_for_uncompressed_sizes(tmp_path):
    path = write(tmp_path / "t.bin", ZEROS_THEN_RAW)
    message = (
        f"uncompressed allocations need {40 * MIB} B at event 0, before kernel 0 \\(reads zeros\\), "
        f"there are {39 * MIB} B: {MIB} B too much"
    )
    with pytest.raises(BuddysimError, match=message):
        buddysim.simulate(path, machine("39 MiB"), "bandwidth-compression")
    assert buddysim.simulate(path, machine("40 MiB"), "bandwidth-compression").counters["compression.max_ratio"] == 1
    for scheme in set(REGISTRY.names()) - {"bandwidth-compression", "buddy"}:
        buddysim.simulate(path, machine("1 MiB"), scheme)


def test_device_memory_and_carve_out_are_full_at_different_times(tmp_path):
    """At 4x, 24 MiB of zeros need 6 MiB and 18 MiB of the carve-out; later, 8 MiB raw fill device memory of 8 MiB."""
    steps = [("+", "zeros", 24, ZERO), ("fill", "zeros"), ("-", "zeros"), ("+", "raw", 8, RAW), ("kernel", "raw", 1)]
    path = write(tmp_path / "t.bin", steps)
    metadata = 24 * MIB // 256
    counters = buddysim.simulate(path, machine("8 MiB")).counters
    assert (counters["footprint.device_bytes"], counters["footprint.buddy_bytes"]) == (8 * MIB, 18 * MIB)
    assert (counters["footprint.metadata_bytes"], counters["footprint.mean_buddy_bytes"]) == (0, 0)
    with pytest.raises(BuddysimError, match=f"carve-out.* {18 * MIB} B at event 0, before kernel 0"):
        buddysim.simulate(path, machine("8 MiB", **{"buddy.carve_out_ratio": 2}))
    zeros = write(tmp_path / "u.bin", [("+", "zeros", 24, ZERO), ("kernel", "zeros", 1)])
    with pytest.raises(BuddysimError, match=f"device memory.* need {6 * MIB + metadata} B"):
        buddysim.simulate(zeros, machine("6 MiB"))


def test_means_are_weighted_with_the_time_from_launch_to_launch(tmp_path):
    steps = [
        ("+", "zeros", 16, ZERO),
        ("kernel", "zeros", 50),
        ("+", "raw", 4, RAW),
        ("kernel", "raw", 200),
        ("-", "zeros"),
    ]
    result = buddysim.simulate(write(tmp_path / "t.bin", [*steps, ("kernel", "raw", 10)]), P100)
    first, second, third = (kernel["time_ps"] for kernel in result.per_kernel)
    counters, total = result.counters, result.counters["time_ps"]
    assert first + second + third == total
    allocated = 16 * first + 20 * second + 4 * third
    device = 4 * first + 8 * second + 4 * third
    assert counters["footprint.mean_allocated_bytes"] == allocated * MIB // total
    assert counters["footprint.mean_device_bytes"] == device * MIB // total
    assert counters["footprint.mean_buddy_bytes"] == 12 * (first + second) * MIB // total
    assert counters["footprint.mean_metadata_bytes"] == 16 * (first + second) * MIB // 256 // total
    assert counters["compression.mean_ratio"] == pytest.approx(allocated / device)
    assert counters["compression.ratio"] == 20 / 8
    assert counters["compression.max_ratio"] == 4


def test_only_what_lives_between_the_chosen_kernels_counts(tmp_path):
    steps: list[tuple] = []
    for size in (16, 1, 2, 4, 8):
        steps += [("+", f"a{size}", size, RAW), ("kernel", f"a{size}", 1), ("-", f"a{size}")]
    steps += [("+", "behind", 64, RAW)]
    path = write(tmp_path / "t.bin", [("+", "before", 32, RAW), ("-", "before"), *steps])

    def largest(kernels):
        return buddysim.simulate(path, P100, "ideal", kernels=kernels).counters["footprint.allocated_bytes"] // MIB

    assert largest(None) == largest(slice(0, 5)) == largest(slice(2, 5)) == 64  # up to the end of the trace
    assert largest(slice(0, 3)) == 16  # what is freed before the first event lives at no position
    assert largest(slice(1, 4)) == 4
    assert largest(slice(1, 2)) == 1
    with pytest.raises(BuddysimError, match=rf"at event 5, after the last kernel, .* {MIB} B too much"):
        buddysim.simulate(path, machine("63 MiB"), "bandwidth-compression")


def test_many_allocations_in_a_row():
    """30,000 allocations of different sizes are freed one after the other, next to one that stays."""
    count = 30_000
    one = bt.Allocation(0, "stays", 0, 128)
    others = [bt.Allocation(1 + i, "", 0, 128 * (1 + i % 1000), alloc_event=i, free_event=i + 1) for i in range(count)]
    trace = SimpleNamespace(allocations=[one, *others], events=[None] * count, kernels=[], path="t.bin")
    targets = Targets(trace.allocations, dict.fromkeys(range(0, count + 1, 2), TARGET["2x"]))
    footprint = footprint_of(trace, [], targets, P100, REGISTRY.find("buddy"))
    assert len(footprint.positions) == count + 1
    assert footprint.largest()["allocated"] == 128 * 1001
    assert footprint.largest()["device"] == 64 + 128 * 999  # even sizes have 2x
    check_capacity(footprint, P100, trace, REGISTRY.find("buddy"))
