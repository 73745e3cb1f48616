"""Ports under load against a plain queue: first come, first served, no buckets.

Tolerance. A port counts the work of a bucket (65.536 ns) from the bucket's start, so what it is behind with at a
request is the most, over all bucket starts, of the work that has come since, less the time; in the queue it is the
most over all times. Between a time and the bucket's start before it lies less than a bucket. So where requests are
made in the order in which they come, each waits at most one bucket less than in the queue, and none waits longer.
Where they are made in another order (one has waited for an MSHR, the next has not) the port does not exchange their
grants, so single ones differ; their mean stays within a bucket.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from buddysim.probes.engine_parts import LonePort

BUCKET_PS = 1 << 16
FINE = 1024  # units of cost per ps
N = 6000
SERVICES_NS = (0.77, 2.3, 40, 437)  # a sector of a port, a burst, a slow link's sector, a page of 64 KiB


def queue_starts(requests: list[tuple[int, int]]) -> list[int]:
    """Return the start of each request (arrival in ps, cost), first come, first served, rounded down to ps."""
    starts, free = [0] * len(requests), 0
    for number in sorted(range(len(requests)), key=lambda number: requests[number][0]):
        arrival_ps, cost = requests[number]
        start = max(arrival_ps * FINE, free)
        starts[number], free = start // FINE, start + cost
    return starts


def poisson(draw: random.Random, mean_ps: float) -> Iterator[int]:
    """Generate arrival times one by one."""
    now = 0.0
    while True:
        now += draw.expovariate(1 / mean_ps)
        yield int(now)


def bursts(draw: random.Random, mean_ps: float) -> Iterator[int]:
    """Generate arrival times of 1 to 64 requests at once, as those of a warp's lines."""
    now = 0.0
    while True:
        size = draw.choice([1, 4, 16, 64])
        now += draw.expovariate(1 / (mean_ps * size))
        yield from [int(now)] * size


@pytest.mark.parametrize("arrivals", [poisson, bursts])
@pytest.mark.parametrize("load", [0.3, 0.6, 0.8, 0.95])
@pytest.mark.parametrize(
    "service_ns", [0.77, 2.3, 40, 437]
)  # a sector of a port, a burst, a decompressor, a page of 64 KiB
def test_a_port_is_a_queue_but_for_a_bucket(arrivals, load, service_ns):
    cost = int(service_ns * 1000 * FINE)
    times = arrivals(random.Random(1), service_ns * 1000 / load)
    requests = [(next(times), cost) for _ in range(N)]
    port = LonePort()
    grants = [port.request(t, t, cost) for t, _ in requests]
    starts = queue_starts(requests)
    shorter = [start - grant for start, grant in zip(starts, grants, strict=True)]
    assert min(shorter) >= 0
    assert max(shorter) <= BUCKET_PS
    assert max(starts) - max(grants) <= BUCKET_PS  # all work is done in the same time, so throughput is the queue's


@pytest.mark.parametrize("arrivals", [poisson, bursts])
@pytest.mark.parametrize("load", [0.3, 0.6, 0.8, 0.95])
@pytest.mark.parametrize("service_ns", SERVICES_NS)
def test_requests_that_come_in_another_order_wait_as_long_on_average(arrivals, load, service_ns):
    """Half of the requests arrive up to 300 ns after they were made."""
    cost, draw = int(service_ns * 1000 * FINE), random.Random(2)
    times = arrivals(draw, service_ns * 1000 / load)
    made = [next(times) for _ in range(N)]
    requests = [(t + draw.choice([0, draw.randrange(300_000)]), cost) for t in made]
    port = LonePort()
    grants = [port.request(now, t, cost) for now, (t, _) in zip(made, requests, strict=True)]
    starts = queue_starts(requests)
    assert abs(sum(starts) - sum(grants)) <= BUCKET_PS * N
    assert abs(max(starts) - max(grants)) <= BUCKET_PS + 300_000


@pytest.mark.parametrize("overload", [1.3, 2.0])
def test_a_port_that_is_offered_too_much_carries_its_bandwidth(overload):
    """The backlog exceeds the buckets that a port keeps (33.6 us)."""
    cost = 40_000 * FINE
    times = poisson(random.Random(3), 40_000 / overload)
    requests = [(next(times), cost) for _ in range(N)]
    port = LonePort()
    grants = [port.request(t, t, cost) for t, _ in requests]
    starts = queue_starts(requests)
    assert max(start - t for start, (t, _) in zip(starts, requests, strict=True)) > 512 * BUCKET_PS
    assert all(0 <= start - grant <= BUCKET_PS for start, grant in zip(starts, grants, strict=True))
