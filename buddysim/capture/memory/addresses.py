"""Addresses in the trace file: the program's own, moved to multiples of 128 B."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from buddysim.compress import ENTRY_BYTES
from buddysim.trace import Allocation
from buddysim.trace.live import LiveAllocations

ALIGNMENT: Final = ENTRY_BYTES


class TraceAddresses:
    """Give every allocation a base that is a multiple of 128, so that its first entry begins with its first byte.

    The base is the multiple at or below its address, or the next free one if another allocation ends there.
    """

    def __init__(self) -> None:
        self._bases: dict[int, Allocation] = {}
        self._live = LiveAllocations()

    def keep_only(self, numbers: Iterable[int]) -> None:
        """Remove all other allocations, which were freed."""
        for number in self._bases.keys() - set(numbers):
            self._live.remove(self._bases.pop(number))

    def base_of(self, number: int, address: int, size: int) -> int:
        """Return the base of an allocation in the trace, constant during its lifetime."""
        if number in self._bases:
            return self._bases[number].base
        base = address - address % ALIGNMENT
        while (other := self._live.overlapping(base, base + size)) is not None:
            base = -(-other.end // ALIGNMENT) * ALIGNMENT
        allocation = Allocation(number, "", base, size)
        self._bases[number] = allocation
        self._live.add(allocation)
        return base
