"""The allocations that are live at one event, by address."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from buddysim.trace.model import Allocation


class LiveAllocations:
    """Allocations that do not overlap, searched by address in logarithmic time."""

    def __init__(self) -> None:
        self._bases: list[int] = []
        self._allocations: list[Allocation] = []

    def overlapping(self, base: int, end: int) -> Allocation | None:
        """A live allocation that overlaps ``base:end``."""
        after = bisect_left(self._bases, end)
        if after and self._allocations[after - 1].end > base:
            return self._allocations[after - 1]
        return None

    def add(self, allocation: Allocation) -> None:
        at = bisect_left(self._bases, allocation.base)
        self._bases.insert(at, allocation.base)
        self._allocations.insert(at, allocation)

    def remove(self, allocation: Allocation) -> None:
        at = bisect_left(self._bases, allocation.base)
        del self._bases[at], self._allocations[at]

    def containing(self, base: int, end: int) -> Allocation | None:
        """The live allocation that contains ``base:end``."""
        at = bisect_right(self._bases, base) - 1
        if at >= 0 and end <= self._allocations[at].end:
            return self._allocations[at]
        return None

    def __iter__(self) -> Iterator[Allocation]:
        return iter(self._allocations)

    def __len__(self) -> int:
        return len(self._allocations)
