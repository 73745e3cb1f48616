"""Memcpys and memsets take time on copy engines, next to kernels of other streams. Times by hand."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import buddysim
import buddysim.trace as bt
from buddysim.base.errors import BuddysimError
from buddysim.buddy import Targets
from buddysim.replay.driver import ReplayRun
from buddysim.replay.engine.event_loop import ReplayEngine
from tests.replay.events import BASE, load_block, provenance
from tests.replay.mechanisms.hand import NS, machine
from tests.trace.builders import records

MIB = 1 << 20
LATENCY_PS, US = 3_000_000, 1_000_000
#: To the device 1 B per 100 ps, from it 1 per 200, pageable 1 per 400.
KEYS = {
    "copies__timed": "between",
    "copies__latency": "3 us",
    "copies__h2d_bandwidth": "10 GB/s",
    "copies__d2h_bandwidth": "5 GB/s",
    "copies__pageable_bandwidth": "2500 MB/s",
}
Event = tuple[str, dict[str, Any]]


def kernel(stream: int, us: int) -> Event:
    """A kernel of one warp that computes, and accesses nothing."""
    return "kernel", {"stream": stream, "us": us}


def copy(kind: str, n_bytes: int, stream: int = 0, at: int = 0, **more: Any) -> Event:
    return kind, {"bytes": n_bytes, "stream": stream, "at": at, **more}


def trace_of(path: Path, *events: Event, classes: tuple[int, int] | None = None) -> Path:
    """Write events on an allocation of 16 MiB; `classes`: its entries' sizes before and after the first kernel."""
    with bt.TraceWriter(path, provenance()) as writer:
        data = writer.add_allocation("data", BASE, 16 * MIB)
        for name, fields in events:
            if name == "kernel":
                cycles = fields["us"] * 1000
                gap = {"tail_gap_instructions": 1, "tail_critical_path_cycles": cycles}
                writer.begin_kernel(name, (1, 1, 1), (32, 1, 1), stream=fields["stream"])
                writer.add_blocks(*records([(0, [({"warp": 0, **gap}, [])])]))
                writer.end_kernel()
            elif name == "memset":
                writer.memset(BASE + fields["at"], fields["bytes"], 0, stream=fields["stream"])
            else:
                more = {key: fields[key] for key in ("host_memory", "latency_ps", "source") if key in fields}
                writer.memcpy(name, BASE + fields["at"], fields["bytes"], stream=fields["stream"], **more)
        for point, size_class in enumerate(classes or ()):
            snapshot = writer.add_snapshot(point, "")
            writer.add_size_map(snapshot, data, np.full(16 * MIB // 128, size_class, np.uint8))
    return path


def run(path: Path, scheme: str = "ideal", targets: Targets | None = None, **keys: Any) -> buddysim.ReplayResult:
    return buddysim.simulate(path, machine(**{**KEYS, **keys}), scheme, targets)


def spans(result: buddysim.ReplayResult) -> list[tuple[int, int]]:
    """Begin and end of each kernel in microseconds, to the nearest."""
    rows = sorted(result.per_kernel, key=lambda row: row["index"])
    return [(round(row["launch_ps"] / US), round((row["launch_ps"] + row["time_ps"]) / US)) for row in rows]


def test_a_copy_takes_its_latency_and_its_bytes(tmp_path: Path) -> None:
    """Kernels of 1 us; 1 MiB at 10 GB/s is 104.9 us, at 5 twice, pageable four times."""
    for kind, more, per_byte_ps in (
        ("htod", {}, 100),
        ("htod", {"host_memory": "pinned"}, 100),
        ("dtoh", {}, 200),
        ("htod", {"host_memory": "pageable"}, 400),
        ("dtoh", {"host_memory": "pageable"}, 400),
    ):
        path = trace_of(tmp_path / "t.bin", kernel(0, 1), copy(kind, MIB, **more), kernel(0, 1))
        (_, end), (begin, _) = spans(result := run(path))
        assert end == 1
        assert begin == round((1_000_000 + LATENCY_PS + per_byte_ps * MIB) / US)
        assert result.counters["copies.bytes"] == MIB
        assert result.counters["copies.busy_ps"] == per_byte_ps * MIB


def test_a_trace_s_own_latency_replaces_the_machine_s(tmp_path: Path) -> None:
    path = trace_of(tmp_path / "t.bin", kernel(0, 1), copy("htod", 10_000, latency_ps=50 * US), kernel(0, 1))
    assert spans(run(path))[1][0] == 1 + 50 + 1


def test_a_copy_on_the_device_takes_the_bandwidth_of_memory_twice(tmp_path: Path) -> None:
    """Device memory has 16 GB/s: 1 MiB is read and written in 131 us, set in 66."""
    for event, us in (
        (copy("dtod", MIB, source=BASE + 8 * MIB), 131),
        (copy("memset", MIB), 66),
    ):
        path = trace_of(tmp_path / "t.bin", kernel(0, 1), event, kernel(0, 1))
        assert spans(run(path))[1][0] == pytest.approx(1 + 3 + us, abs=1)


def test_a_copy_runs_beside_kernels_of_other_streams(tmp_path: Path) -> None:
    """The issue's kernels in two streams and a copy in a third, which nothing waits for."""
    one, two, third = kernel(1, 100), kernel(2, 100), copy("htod", 128, stream=3)
    assert spans(run(trace_of(tmp_path / "t.bin", one, third, two))) == [(0, 100), (0, 100)]
    assert spans(run(trace_of(tmp_path / "u.bin", one, copy("htod", 128), two))) == [(0, 100), (103, 203)]
    in_order = trace_of(tmp_path / "v.bin", one, copy("htod", MIB, stream=1), two, kernel(1, 1))
    assert spans(run(in_order)) == [(0, 100), (0, 100), (208, 209)]


def test_copies_of_one_direction_have_one_engine_and_those_of_two_do_not(tmp_path: Path) -> None:
    """Two copies of 100,000 B, 10 us to the device and 20 from it; both latencies pass at once."""
    both = {
        "same": (copy("htod", 100_000, 1), copy("htod", 100_000, 2), 3 + 20),
        "other": (copy("htod", 100_000, 1), copy("dtoh", 100_000, 2), 3 + 20),
        "long": (copy("dtoh", 100_000, 1), copy("dtoh", 100_000, 2), 3 + 40),
    }
    for name, (first, second, us) in both.items():
        events = (kernel(3, 1), first, second, kernel(1, 1), kernel(2, 1))
        rows = spans(run(trace_of(tmp_path / f"{name}.bin", *events)))
        assert max(begin for begin, _ in rows) == pytest.approx(us, abs=1), name
    two = run(tmp_path / "same.bin", copies__engines=2, dram__pseudo_channel_bandwidth="32 GB/s")
    assert max(begin for begin, _ in spans(two)) == pytest.approx(3 + 10, abs=1)


@pytest.mark.parametrize(("timed", "us"), [("none", 2), ("between", 2 + 13), ("all", 2 + 3 * 13)])
def test_copies_before_the_first_kernel_and_behind_the_last_are_outside_the_run(
    tmp_path: Path, timed: str, us: int
) -> None:
    one = copy("htod", 100_000)
    path = trace_of(tmp_path / "t.bin", one, kernel(0, 1), one, kernel(0, 1), one)
    counters = run(path, copies__timed=timed).counters
    assert counters["time_ps"] / US == pytest.approx(us, abs=0.1)
    assert counters["copies.moved"] == {"none": 0, "between": 1, "all": 3}[timed]


def test_copies_are_traffic_of_device_memory(tmp_path: Path) -> None:
    """Uncompressed, each sector of a copy is written or read once, but for those that the L2 holds (4 KiB)."""
    events = (kernel(0, 1), copy("htod", MIB), copy("dtoh", MIB, at=4 * MIB), kernel(0, 1))
    for fill, held in ((True, 0), (False, 0)):
        counters = run(trace_of(tmp_path / "t.bin", *events), l2__fill_on_memcpy=fill).counters
        assert (counters["device.write_bytes"], counters["device.read_bytes"]) == (MIB, MIB - held)
    back = (kernel(0, 1), copy("htod", 4096), copy("dtoh", 4096), kernel(0, 1))
    counters = run(trace_of(tmp_path / "u.bin", *back), l2__fill_on_memcpy=True).counters
    assert (counters["device.write_bytes"], counters["device.read_bytes"]) == (4096, 0)


def test_copies_are_compressed(tmp_path: Path) -> None:
    """Entries of 64 B with a target of 4x: a sector in device memory, one behind the link, and their metadata."""
    events = (kernel(0, 1), copy("htod", MIB), kernel(0, 1))
    path = trace_of(tmp_path / "t.bin", *events, classes=(0, 4))
    with bt.open_trace(path) as trace:
        counters = run(path, "buddy", Targets.uniform(trace, "4x")).counters
    entries = MIB // 128
    assert counters["device.write_bytes"] == counters["link.write_bytes"] == 32 * entries
    assert counters["metadata.accesses"] == entries
    assert counters["metadata.misses"] == entries // 64
    assert run(path, "bandwidth-compression").counters["device.write_bytes"] == 64 * entries


def test_memory_slower_than_the_engine_holds_a_copy(tmp_path: Path) -> None:
    """An engine of 100 GB/s, device memory of 16 and a write-back buffer: 4 MiB take 262 us."""
    path = trace_of(tmp_path / "t.bin", kernel(0, 1), copy("htod", 4 * MIB), kernel(0, 1))
    fast = {"copies__h2d_bandwidth": "100 GB/s", "l2__writeback_buffer": 16}
    assert spans(run(path, **fast))[1][0] == pytest.approx(4 + 262, rel=0.02)


def test_a_load_waits_for_no_more_than_a_copy_has_in_flight(tmp_path: Path) -> None:
    """After 60 us, an engine of 100 GB/s would have put 5.7 of 6 MiB before the load; it has 1 MiB, 66 us of memory."""
    with bt.TraceWriter(tmp_path / "t.bin", provenance()) as writer:
        writer.add_allocation("data", BASE, 16 * MIB)
        for stream, lines in ((1, []), (1, [BASE])):
            writer.begin_kernel("kernel", (1, 1, 1), (32, 1, 1), stream=stream)
            writer.add_blocks(*records([load_block(lines, gap=60_000)]))
            writer.end_kernel()
            if not lines:
                writer.memcpy("htod", BASE + 8 * MIB, 6 * MIB, stream=2)
    result = run(tmp_path / "t.bin", copies__h2d_bandwidth="100 GB/s", copies__latency="0 ns")
    assert 60 + 40 < spans(result)[1][1] < 60 + 70


def test_a_very_long_copy_takes_its_time_without_traffic(tmp_path: Path) -> None:
    """500 GiB at 10 GB/s are a minute; at 1 MB/s they end later than a run can go."""
    size = 500 << 30
    with bt.TraceWriter(tmp_path / "t.bin", provenance()) as writer:
        writer.add_allocation("data", BASE, size)
        for number in range(2):
            writer.begin_kernel("kernel", (1, 1, 1), (32, 1, 1))
            writer.add_blocks(*records([load_block([BASE])]))
            writer.end_kernel()
            if not number:
                writer.memcpy("htod", BASE, size)
    result = run(tmp_path / "t.bin")
    assert result.counters["time_ps"] == pytest.approx(size * 100, rel=1e-6)
    assert result.counters["device.write_bytes"] == 0
    with pytest.raises(BuddysimError, match="a memcpy ends later than a run"):
        run(tmp_path / "t.bin", copies__h2d_bandwidth="1 MB/s")


def test_copies_take_bandwidth_from_a_kernel_that_runs_beside_them(tmp_path: Path) -> None:
    def chase(path: Path, *copies: Event) -> int:
        with bt.TraceWriter(path, provenance()) as writer:
            writer.add_allocation("data", BASE, 16 * MIB)
            for stream in (1, 2):
                writer.begin_kernel("kernel", (1, 1, 1), (32, 1, 1), stream=stream)
                lines = range(BASE, BASE + 128 * 1000, 128) if stream == 1 else []
                writer.add_blocks(*records([load_block(lines)]))
                writer.end_kernel()
                for kind, fields in copies:
                    writer.memcpy(kind, BASE + 8 * MIB, fields["bytes"], stream=3)
                copies = ()
        result = run(path, copies__latency="0 ns")
        return int(next(row["time_ps"] for row in result.per_kernel if row["index"] == 0))

    alone, beside = chase(tmp_path / "t.bin"), chase(tmp_path / "u.bin", copy("htod", 4 * MIB))
    assert alone == pytest.approx(1000 * 205 * NS, rel=0.05)
    assert beside > 1.005 * alone


def test_an_allocation_is_free_when_the_copy_from_it_has_ended(tmp_path: Path) -> None:
    """A kernel on memory with the address of a freed allocation waits for a copy of another stream."""
    with bt.TraceWriter(tmp_path / "t.bin", provenance()) as writer:
        for number in range(2):
            writer.add_allocation("data", BASE, MIB)
            writer.begin_kernel("kernel", (1, 1, 1), (32, 1, 1), stream=1)
            writer.add_blocks(*records([load_block([BASE])]))
            writer.end_kernel()
            if not number:
                writer.memcpy("dtoh", BASE, 100_000, stream=2)
                writer.free_allocation(0)
    assert spans(run(tmp_path / "t.bin"))[1][0] == 3 + 20


def test_a_run_is_freed_at_its_end(tmp_path: Path) -> None:
    """Its parts do not refer to it: a cycle would keep its caches until the garbage collector comes by."""
    path = trace_of(tmp_path / "t.bin", kernel(0, 1), copy("htod", MIB), kernel(0, 1))
    gc.collect()
    gc.disable()
    try:
        run(path)
        assert not any(isinstance(one, ReplayRun | ReplayEngine) for one in gc.get_objects())
    finally:
        gc.enable()
