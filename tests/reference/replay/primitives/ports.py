"""Ports with a bandwidth, and rings of MSHRs."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from tests.reference.replay.memory.histograms import RefHistogram

BUCKET_PS_BITS, CAPACITY_BITS = 16, 26
CAPACITY = 1 << CAPACITY_BITS


@dataclass
class RefClock:
    """The current time of the simulation."""

    now: int = 0


class RefPort:
    """A bandwidth, kept in buckets, all of them from the start of the run on.

    Parameters
    ----------
    waits : of its requests; None where they are not counted
    """

    def __init__(self, waits: RefHistogram | None = None) -> None:
        self.waits = waits
        self.used: dict[int, int] = defaultdict(int)

    def request(self, t: int, cost: int) -> int:
        """When the start of a request comes that arrives at `t`; all its cost is taken."""
        bucket, rest = t >> BUCKET_PS_BITS, cost
        while rest > CAPACITY - self.used[bucket]:
            rest -= CAPACITY - self.used[bucket]
            self.used[bucket] = CAPACITY
            bucket += 1
        self.used[bucket] += rest
        start = max(t, (bucket << BUCKET_PS_BITS) + ((self.used[bucket] - cost) >> CAPACITY_BITS - BUCKET_PS_BITS))
        if self.waits:
            self.waits.add(start - t)
        return start


class RefRing:
    """A ring of MSHRs that are taken in a fixed order, whether free or not."""

    def __init__(self, count: int) -> None:
        self.times = [0] * count
        self.position = -1

    def take(self) -> int:
        """Take the next MSHR; return when it is free. The caller must then call `hold`."""
        self.position = (self.position + 1) % len(self.times)
        return self.times[self.position]

    def take_earlier(self) -> int:
        """Take the earlier free one of the next two MSHRs: they are swapped if the second is free earlier."""
        first, second = ((self.position + i) % len(self.times) for i in (1, 2))
        if self.times[second] < self.times[first]:
            self.times[first], self.times[second] = self.times[second], self.times[first]
        return self.take()

    def hold(self, until: int) -> None:
        """Hold the MSHR taken last until `until`."""
        self.times[self.position] = until
