"""Banked device memory under load against a first-ready queue, command by command (`fr_fcfs`): reads of one sector
of one channel.

Tolerances. The queue reorders waiting requests, and moves a burst up when an earlier one is late. The engine schedules
a request when it arrives and never moves it. The mean latency therefore differs by a fraction. The bus and the rate of
activations are the same resources in both, so the time of all requests agrees within a percent.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from buddysim.replay.parameters import engine_numbers
from tests.reference.replay.primitives.ref_cache import fold
from tests.replay.fr_fcfs import Channel, Request, Timing
from tests.replay.mechanisms.hand import NS, load, machine, run, store

BANKS, GROUPS, ENTRIES, N = 16, 4, 1 << 20, 2000
#: JESD235's timings as on `p100-nvlink2`, in whole ns; the crossbar out of the way, MSHRs for all
CHANNEL = machine(
    dram__model="banked",
    dram__banks=BANKS,
    dram__bank_groups=GROUPS,
    dram__timing__tRCD="14 ns",
    dram__timing__tRP="14 ns",
    dram__timing__tCL="14 ns",
    dram__timing__tRAS="34 ns",
    dram__timing__tRTP="5 ns",
    dram__timing__tCCD_L="4 ns",
    dram__timing__tRRD_S="4 ns",
    dram__timing__tFAW="16 ns",
    dram__timing__tCWL="6 ns",
    dram__timing__tWR="16 ns",
    dram__timing__tWTR="8 ns",
    dram__timing__tRTW="12 ns",
    dram__write_high_watermark=32,
    dram__write_low_watermark=8,
    l1__mshrs=4096,
    l2__mshrs=4096,
    crossbar__request_bandwidth="1000 GB/s",
    crossbar__reply_bandwidth="1000 GB/s",
    l2__bandwidth="1000 GB/s",
)
TIMING = Timing(
    burst=2 * NS,
    rcd=14 * NS,
    rp=14 * NS,
    cl=14 * NS,
    ras=34 * NS,
    ccd_l=4 * NS,
    rtp=5 * NS,
    rrd=4 * NS,
    faw=16 * NS,
    cwl=6 * NS,
    wr=16 * NS,
    wtr=8 * NS,
    rtw=12 * NS,
)
WAYS = 32  # of the L2's only set: an access to a line evicts the one of 32 accesses before


def location(entry: int) -> tuple[int, int]:
    """Return bank and row of an entry (docs/reference/replay-rules.md, Hashes)."""
    row_stripe, in_groups = entry // (1024 * GROUPS // 128), BANKS // GROUPS
    row = row_stripe // in_groups
    return entry % GROUPS + (row_stripe ^ fold(row)) % in_groups * GROUPS, row


def anywhere(draw: random.Random, number: int) -> int:
    return draw.randrange(ENTRIES)


def stream(draw: random.Random, number: int) -> int:
    return number


def four_streams(draw: random.Random, number: int) -> int:
    return number % 4 * (ENTRIES // 4 + 1000) % ENTRIES + number // 4


def slow(fraction: float) -> Any:
    """Return a load between or below those of quick tests, for slow ones."""
    return pytest.param(fraction, marks=pytest.mark.slow)


def under_load(
    entries: list[int], stores: list[bool], mean_ns: float, draw: random.Random, drains: str = "interleaved"
) -> tuple[float, float, int, int]:
    """Return mean read latencies of the engine and of the queue, and their ends (ps), for random accesses."""
    channel = CHANNEL.with_overrides({"dram.write_drain": drains})
    numbers = engine_numbers(channel, Fraction(1))
    before_ps, after_ps = int(str(numbers["dram_before_ps"])), int(str(numbers["dram_after_ps"]))
    now_ns, exact_ns = 0, 0.0
    ops, requests = [], []
    for number, entry in enumerate(entries):
        exact_ns += draw.expovariate(1 / mean_ns)
        issued_ns = max(now_ns + 1, int(exact_ns))
        op = (store if stores[number] else load)(entry, critical_path_cycles=issued_ns - now_ns)
        op[0]["use_distance"] = 0
        ops.append(op)
        arrival_ps = (issued_ns + 50) * NS + before_ps
        if number >= WAYS and stores[number - WAYS]:
            requests.append(Request(arrival_ps, *location(entries[number - WAYS]), write=True))
        if not stores[number]:
            requests.append(Request(arrival_ps, *location(entry)))
        now_ns = issued_ns
    count = run(channel, ops, regions=[(0, ENTRIES, 0, 4)])
    ends = Channel(requests, BANKS, GROUPS, TIMING, high=32, low=8).serve()
    reads = [(end, request.arrival_ps) for end, request in zip(ends, requests, strict=True) if not request.write]
    assert count["loads_missed"] == len(reads)
    latency = count["load_ps"] / len(reads) - 100 * NS - before_ps - after_ps
    expected = sum(end - arrival for end, arrival in reads) / len(reads)
    return latency, expected, count["now_ps"], max(end for end, _ in reads) + after_ps + 50 * NS


@pytest.mark.parametrize("load_fraction", [0.3, slow(0.6), slow(0.8), 0.95])
@pytest.mark.parametrize(
    ("entry_of", "min_ns", "tolerance"),
    [(anywhere, 4, 0.06), (stream, 2, 0.06), (four_streams, 2, 0.35)],  # the least time between two: tRRD, a burst
)
def test_reads_wait_as_in_a_first_ready_queue(
    entry_of: Callable[[random.Random, int], int], min_ns: int, load_fraction: float, tolerance: float
) -> None:
    draw = random.Random(7)
    entries = [entry_of(draw, number) for number in range(N)]
    latency, expected, end, end_expected = under_load(entries, [False] * N, min_ns / load_fraction, draw)
    assert latency == pytest.approx(expected, rel=tolerance)
    assert end == pytest.approx(end_expected, rel=0.005)


@pytest.mark.parametrize("load_fraction", [slow(0.3), 0.6])
@pytest.mark.parametrize("one_store_in", [2, 3])
@pytest.mark.parametrize(("in_order", "min_ns"), [(False, 4), (True, 2)])
@pytest.mark.parametrize(("drains", "least", "most"), [("interleaved", 0.25, 1.1), ("exclusive", 0.75, 1.3)])
def test_reads_and_writes_take_the_time_of_a_first_ready_queue(
    drains: str, least: float, most: float, in_order: bool, min_ns: int, one_store_in: int, load_fraction: float
) -> None:
    """All accesses together take the same time. A read of the queue waits until a drain that has begun is over; among
    reads it may take a free slot between the bursts that the drain has booked. So it waits less, down to a quarter.
    """
    draw = random.Random(7)
    entries = list(range(N)) if in_order else draw.sample(range(ENTRIES), N)
    stores = [draw.randrange(one_store_in) == 0 for _ in range(N)]
    latency, expected, end, end_expected = under_load(entries, stores, min_ns / load_fraction, draw, drains)
    assert end == pytest.approx(end_expected, rel=0.03)
    assert least * expected <= latency <= most * expected
