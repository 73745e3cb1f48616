"""Device memory as the driver hands it out: how much is left, and at which addresses.

Addresses decide which of several cached blocks of one size serves a request: the lowest. Observed in twenty snapshots
of real runs: the driver reserves address ranges of multiples of 32 MiB, each below the one before, and a request that
fits into what is left of one takes the lowest such range first.
"""

from __future__ import annotations

from bisect import bisect_left, insort

GRANULE = 32 << 20
"""Multiple of which the driver reserves addresses, in bytes."""
_TOP = 1 << 46


class DeviceMemory:
    """Memory of one GPU that the caching allocator takes segments from.

    Parameters
    ----------
    capacity : bytes that it may take; None for no limit

    Attributes
    ----------
    used : bytes taken
    """

    def __init__(self, capacity: int | None = None) -> None:
        self.capacity = capacity
        self.used = 0
        self._bottom = _TOP
        self._free: list[tuple[int, int]] = []

    def available(self, size: int) -> bool:
        """Whether so many more bytes can be taken."""
        return self.capacity is None or self.used + size <= self.capacity

    def allocate(self, size: int) -> int | None:
        """Take a segment; return its address, None where too little memory is left."""
        if not self.available(size):
            return None
        self.used += size
        for index, (address, free) in enumerate(self._free):
            if free >= size:
                if free == size:
                    del self._free[index]
                else:
                    self._free[index] = address + size, free - size
                return address
        reserved = self.reserve(size)
        left = -size % GRANULE
        if left:
            insort(self._free, (reserved + size, left))
        return reserved

    def reserve(self, size: int) -> int:
        """Return the address of a new range for `size` bytes; no memory is taken."""
        self._bottom -= -(-size // GRANULE) * GRANULE
        return self._bottom

    def free(self, address: int, size: int) -> None:
        """Give a segment back; its addresses become one with free ones of the same range."""
        self.used -= size
        index = bisect_left(self._free, (address, 0))
        if index < len(self._free) and self._free[index][0] == address + size and self._free[index][0] % GRANULE:
            size += self._free.pop(index)[1]
        if index and sum(self._free[index - 1]) == address and address % GRANULE:
            address, before = self._free.pop(index - 1)
            size += before
        insort(self._free, (address, size))

    def take(self, size: int) -> None:
        """Take pages whose addresses are reserved."""
        self.used += size

    def give_back(self, size: int) -> None:
        """Give pages back whose addresses stay reserved."""
        self.used -= size
