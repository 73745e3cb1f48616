"""Model of PyTorch's caching allocator for CUDA (c10/cuda/CUDACachingAllocator.cpp): addresses of tensors.

Sizes are rounded up to 512 B. Requests up to 1 MiB come from segments of 2 MiB, those below 10 MiB from segments of
20 MiB. Larger requests have a segment each, a multiple of 2 MiB. The smallest free block that fits is taken; of equal
ones, the first by address. The rest is split off, in large segments only if it is over 1 MiB. Freed blocks merge with
free neighbours of their segment. Segments are never returned.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass
from typing import Final

MIN_BLOCK: Final = 512
SMALL_SIZE: Final = 1 << 20
SMALL_SEGMENT: Final = 2 << 20
LARGE_SEGMENT: Final = 20 << 20
MIN_LARGE: Final = 10 << 20
ROUND_LARGE: Final = 2 << 20
#: Base of the first segment; each segment begins at a multiple of 2 MiB.
FIRST_BASE: Final = 0x7F00_0000_0000


@dataclass(frozen=True)
class Segment:
    """Memory that was requested from the driver."""

    base: int
    bytes: int

    @property
    def small(self) -> bool:
        return self.bytes == SMALL_SEGMENT


@dataclass
class _Block:
    segment: int
    base: int
    bytes: int
    free: bool = False
    before: _Block | None = None
    after: _Block | None = None


class CachingAllocator:
    """Blocks by address. `segments` are in the order of their requests."""

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        self._small: list[tuple[int, int]] = []  # free blocks of small segments: bytes, address; sorted
        self._large: list[tuple[int, int]] = []
        self._blocks: dict[int, _Block] = {}

    def allocate(self, size: int) -> int:
        """Allocate a block; return its address.

        Parameters
        ----------
        size : bytes, at least 1
        """
        rounded = max(MIN_BLOCK, -(-size // MIN_BLOCK) * MIN_BLOCK)
        small = rounded <= SMALL_SIZE
        free = self._small if small else self._large
        position = bisect_left(free, (rounded, 0))
        fits = position < len(free)
        block = self._blocks[free.pop(position)[1]] if fits else self._new_segment(rounded, small)
        block.free = False
        rest = block.bytes - rounded
        if rest >= MIN_BLOCK if small else rest > SMALL_SIZE:
            self._split(block, rounded, free)
        return block.base

    def release(self, base: int) -> None:
        """Free a block by its address."""
        block = self._blocks[base]
        if block.free:
            raise ValueError(f"{base:#x}: released twice")
        free = self._small if self.segments[block.segment].small else self._large
        for other in (block.before, block.after):
            if other is not None and other.free:
                free.remove((other.bytes, other.base))
                block = self._merge(*sorted((block, other), key=lambda each: each.base))
        block.free = True
        insort(free, (block.bytes, block.base))

    def segment_of(self, base: int) -> int:
        """Return the number of the segment with a block."""
        return self._blocks[base].segment

    def _new_segment(self, rounded: int, small: bool) -> _Block:
        if small:
            size = SMALL_SEGMENT
        elif rounded < MIN_LARGE:
            size = LARGE_SEGMENT
        else:
            size = -(-rounded // ROUND_LARGE) * ROUND_LARGE
        base = self.segments[-1].base + self.segments[-1].bytes if self.segments else FIRST_BASE
        self.segments.append(Segment(base, size))
        block = self._blocks[base] = _Block(len(self.segments) - 1, base, size)
        return block

    def _split(self, block: _Block, size: int, free: list[tuple[int, int]]) -> None:
        rest = _Block(block.segment, block.base + size, block.bytes - size, True, block, block.after)
        if block.after is not None:
            block.after.before = rest
        block.after, block.bytes = rest, size
        self._blocks[rest.base] = rest
        insort(free, (rest.bytes, rest.base))

    def _merge(self, first: _Block, second: _Block) -> _Block:
        first.bytes += second.bytes
        first.after = second.after
        if second.after is not None:
            second.after.before = first
        del self._blocks[second.base]
        return first
