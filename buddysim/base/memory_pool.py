"""A pool of addresses, as vDNN's GPU memory pool (Section III-B).

vDNN uses NVIDIA's cnmem (`Manager::findBestBlockUnsafe`, `extractBlockUnsafe`). Free blocks are sorted by address and
merged with adjacent ones. A request is rounded up to 512 bytes. With ``"best-fit"``, the default, it takes the smallest
block that holds it, of equal ones the lowest; with ``"first-fit"`` the lowest block that holds it. It is cut from the
block's start.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Literal

FitPolicy = Literal["best-fit", "first-fit"]
FITS: tuple[FitPolicy, ...] = ("best-fit", "first-fit")

ALIGNMENT = 512  # bytes; CNMEM_GRANULARITY


class PoolExhausted(Exception):
    """No free block holds the request.

    Attributes
    ----------
    requested_bytes : the request, rounded up to the alignment
    free_bytes : sum over all free blocks
    largest_bytes : of the largest free block
    """

    def __init__(self, requested_bytes: int, free_bytes: int, largest_bytes: int) -> None:
        super().__init__(f"{requested_bytes} bytes requested, {free_bytes} free, at most {largest_bytes} in one piece")
        self.requested_bytes, self.free_bytes, self.largest_bytes = requested_bytes, free_bytes, largest_bytes

    @property
    def shortfall_bytes(self) -> int:
        """Bytes by which the pool is too small; with enough bytes free, by which its largest block is."""
        short = self.requested_bytes - self.free_bytes
        return short if short > 0 else self.requested_bytes - self.largest_bytes

    @property
    def fragmented(self) -> bool:
        """Whether enough bytes are free, but in no single block."""
        return self.free_bytes >= self.requested_bytes


class MemoryPool:
    """A range of addresses from 0 to `capacity`.

    Parameters
    ----------
    capacity : bytes
    fit : ``"best-fit"`` or ``"first-fit"``
    alignment : bytes to which a request is rounded up

    Attributes
    ----------
    slack_bytes : bytes by which the pool could be smaller with every request at the same address
    """

    def __init__(self, capacity: int, fit: FitPolicy = "best-fit", alignment: int = ALIGNMENT) -> None:
        self.capacity = capacity
        self.alignment = alignment
        self.free_bytes = capacity
        self.high_water = 0
        self.slack_bytes = capacity
        self._best = fit == "best-fit"
        self._starts = [0] if capacity else []
        self._sizes = [capacity] if capacity else []
        self._live: dict[int, int] = {}

    @property
    def used_bytes(self) -> int:
        """Bytes in use, with rounding."""
        return self.capacity - self.free_bytes

    @property
    def largest_free(self) -> int:
        """Bytes of the largest free block."""
        return max(self._sizes, default=0)

    @property
    def live(self) -> dict[int, int]:
        """Bytes in use, by address."""
        return dict(self._live)

    def rounded(self, byte_count: int) -> int:
        """Return the bytes of a request, rounded up."""
        return -(-max(byte_count, 1) // self.alignment) * self.alignment

    def allocate(self, byte_count: int) -> int:
        """Allocate at least `byte_count` bytes; return the address.

        Raises
        ------
        PoolExhausted
            where no free block holds it
        """
        size = self.rounded(byte_count)
        index = self._find(size)
        if index < 0:
            raise PoolExhausted(size, self.free_bytes, self.largest_free)
        self._note_slack(index, size)
        address = self._starts[index]
        if self._sizes[index] == size:
            del self._starts[index], self._sizes[index]
        else:
            self._starts[index] += size
            self._sizes[index] -= size
        self._live[address] = size
        self.free_bytes -= size
        self.high_water = max(self.high_water, address + size)
        return address

    def release(self, address: int) -> None:
        """Free a block; it merges with adjacent free blocks."""
        size = self._live.pop(address)
        starts, sizes = self._starts, self._sizes
        self.free_bytes += size
        index = bisect_left(starts, address)
        if index < len(starts) and address + size == starts[index]:
            starts[index] = address
            sizes[index] += size
        else:
            starts.insert(index, address)
            sizes.insert(index, size)
        if index and starts[index - 1] + sizes[index - 1] == address:
            sizes[index - 1] += sizes[index]
            del starts[index], sizes[index]

    def _note_slack(self, index: int, size: int) -> None:
        """Bound the slack by a request that takes block `index`: a smaller last block would serve it or not."""
        last = self._sizes[-1]
        if self._starts[-1] + last != self.capacity:
            return
        if index == len(self._sizes) - 1:
            self.slack_bytes = min(self.slack_bytes, last - size)
        elif self._best and last >= size:
            self.slack_bytes = min(self.slack_bytes, last - self._sizes[index])

    def _find(self, size: int) -> int:
        best = -1
        for index, free in enumerate(self._sizes):
            if free >= size and (best < 0 or free < self._sizes[best]):
                best = index
                if not self._best:
                    break
        return best
