"""The reference model's ports without buckets: a request takes the first idle interval that is long enough."""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from tests.reference.replay.primitives.ports import BUCKET_PS_BITS, CAPACITY_BITS, RefPort

UNITS_PER_PS_BITS = CAPACITY_BITS - BUCKET_PS_BITS


@contextmanager
def exact_ports() -> Iterator[None]:
    """Within `with`, ports reserve intervals to the picosecond, in the order of the requests."""
    buckets = RefPort.request
    taken: dict[int, list[tuple[int, int]]] = defaultdict(list)
    ports = []  # so that no two have the same id

    def request(self: RefPort, t: int, cost: int) -> int:
        ports.append(self)
        length, start = -(-cost >> UNITS_PER_PS_BITS), t
        for begin, end in taken[id(self)]:
            if begin - start >= length:
                break
            start = max(start, end)
        bisect.insort(taken[id(self)], (start, start + length))
        if self.waits:
            self.waits.add(start - t)
        return start

    RefPort.request = request  # type: ignore[method-assign]
    try:
        yield
    finally:
        RefPort.request = buckets  # type: ignore[method-assign]
