"""Reference model of `memory_pool`: looks at all allocated ranges, and finds the free ones between them."""

from __future__ import annotations

from buddysim.base.memory_pool import ALIGNMENT, FitPolicy, PoolExhausted


class RefPool:
    """Reference model of `buddysim.base.memory_pool.MemoryPool`, without a list of free blocks."""

    def __init__(self, capacity: int, fit: FitPolicy = "best-fit", alignment: int = ALIGNMENT) -> None:
        self.capacity = capacity
        self.fit = fit
        self.alignment = alignment
        self.live: dict[int, int] = {}

    def gaps(self) -> list[tuple[int, int]]:
        """Address and bytes of every free piece, by address."""
        gaps = []
        end = 0
        for address, size in sorted(self.live.items()):
            if address > end:
                gaps.append((end, address - end))
            end = address + size
        if end < self.capacity:
            gaps.append((end, self.capacity - end))
        return gaps

    def allocate(self, byte_count: int) -> int:
        """The address of a piece of at least `byte_count` bytes."""
        size = max(1, (byte_count + self.alignment - 1) // self.alignment) * self.alignment
        holding = [(address, free) for address, free in self.gaps() if free >= size]
        if not holding:
            free = [free for _, free in self.gaps()]
            raise PoolExhausted(size, sum(free), max(free, default=0))
        if self.fit == "best-fit":
            smallest = min(free for _, free in holding)
            holding = [gap for gap in holding if gap[1] == smallest]
        address = holding[0][0]
        self.live[address] = size
        return address

    def release(self, address: int) -> None:
        """Gives a piece back."""
        del self.live[address]
