"""Banked device memory under load against a first-ready queue, command by command (`fr_fcfs`): reads of one sector
of one channel.

Tolerances. The queue reorders what waits, and moves a burst up when an earlier one comes late; the engine places a
request when it comes and never moves it. What that costs or saves shows in the mean latency, by at most a share of
it; the bus and the rate of activations are the same resources in both, so the time of all of them together agrees to
a percent.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction

import pytest

from buddysim.replay.parameters import engine_numbers
from buddysim.replay.twins.cache import fold
from tests.replay.fr_fcfs import Channel, Request, Timing
from tests.replay.mechanisms.hand import NS, load, machine, run

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
    l1__mshrs=4096,
    l2__mshrs=4096,
    crossbar__request_bandwidth="1000 GB/s",
    crossbar__reply_bandwidth="1000 GB/s",
    l2__bandwidth="1000 GB/s",
)
TIMING = Timing(
    burst=2 * NS, rcd=14 * NS, rp=14 * NS, cl=14 * NS, ras=34 * NS, ccd_l=4 * NS, rtp=5 * NS, rrd=4 * NS, faw=16 * NS
)


def location(entry: int) -> tuple[int, int]:
    """Bank and row of an entry (docs/model-rules.md, Hashes)."""
    piece, in_groups = entry // (1024 * GROUPS // 128), BANKS // GROUPS
    row = piece // in_groups
    return entry % GROUPS + (piece ^ fold(row)) % in_groups * GROUPS, row


def anywhere(draw: random.Random, number: int) -> int:
    return draw.randrange(ENTRIES)


def stream(draw: random.Random, number: int) -> int:
    return number


def four_streams(draw: random.Random, number: int) -> int:
    return number % 4 * (ENTRIES // 4 + 1000) % ENTRIES + number // 4


@pytest.mark.parametrize("load_share", [0.3, 0.6, 0.8, 0.95])
@pytest.mark.parametrize(
    ("entry_of", "least_ns", "tolerance"),
    [(anywhere, 4, 0.15), (stream, 2, 0.1), (four_streams, 2, 0.6)],  # the least time between two: tRRD, a burst
)
def test_reads_wait_as_in_a_first_ready_queue(
    entry_of: Callable[[random.Random, int], int], least_ns: int, load_share: float, tolerance: float
) -> None:
    draw, now_ns, exact_ns = random.Random(7), 0, 0.0
    ops, requests = [], []
    numbers = engine_numbers(CHANNEL, Fraction(1))
    before_ps, after_ps = int(str(numbers["dram_before_ps"])), int(str(numbers["dram_after_ps"]))
    for number in range(N):
        exact_ns += draw.expovariate(load_share / least_ns)
        issued_ns = max(now_ns + 1, int(exact_ns))
        entry = entry_of(draw, number)
        ops.append(load(entry, use_distance=0, chain_cycles=issued_ns - now_ns))
        requests.append(Request((issued_ns + 50) * NS + before_ps, *location(entry)))
        now_ns = issued_ns
    count = run(CHANNEL, ops, regions=[(0, ENTRIES, 0, 4)])
    assert count["loads_missed"] == N
    ends = Channel(requests, BANKS, GROUPS, TIMING).serve()
    expected = sum(end - request.arrival_ps for end, request in zip(ends, requests, strict=True)) / N
    latency = count["load_ps"] / N - 100 * NS - before_ps - after_ps
    assert latency == pytest.approx(expected, rel=tolerance)
    assert count["now_ps"] == pytest.approx(max(ends) + after_ps + 50 * NS, rel=0.02)
