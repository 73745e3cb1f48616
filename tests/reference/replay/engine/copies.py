"""Effects of copies, fills and frees on lines of the L2."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from buddysim.trace import Memcpy, Memset
from tests.reference.replay.l2.l2 import RefL2
from tests.reference.replay.numbers import SECTOR_BYTES
from tests.reference.replay.primitives.caches import RefCache
from tests.reference.replay.sizes import RefSizes
from tests.reference.replay.space import RefAllocationRange

SECTORS_OF_LINE = 4


def written_range(event: Memcpy | Memset, allocation_range: RefAllocationRange) -> range:
    """Return the bytes of the allocation that a copy or fill writes."""
    first = event.address - allocation_range.allocation.base
    return range(first, min(first + event.bytes, allocation_range.allocation.bytes))


def covered_sectors(written: range, allocation_range: RefAllocationRange) -> dict[int, int]:
    """Return the mask of fully written sectors of each entry that a copy writes, in rising order."""
    covered = {}
    for entry in range(written[0] // 128, written[-1] // 128 + 1):
        mask = 0
        for sector in range(SECTORS_OF_LINE):
            start = 128 * entry + SECTOR_BYTES * sector
            end = min(start + SECTOR_BYTES, allocation_range.allocation.bytes)
            if start < end and written[0] <= start and end <= written[-1] + 1:
                mask |= 1 << sector
        covered[allocation_range.first + entry] = mask
    return covered


def overwrite(l2: RefL2, covered: dict[int, int], counts: Counter[str]) -> None:
    """Drop the written sectors from the L2, as memory has newer data."""
    cache = l2.cache
    for entry, mask in covered.items():
        l2.drop_copies(entry, mask)
        line = cache.peek(entry)
        if line is None:
            continue
        counts["l2.dirty_sectors_overwritten"] += (line.dirty & mask).bit_count()
        line.valid &= ~mask
        line.dirty &= ~mask
        line.pending &= ~mask
        if not line.valid | line.dirty:
            cache.drop(entry)


def resize(
    sizes: RefSizes, cache: RefCache, allocation_range: RefAllocationRange, covered: dict[int, int], launches: int
) -> None:
    """Give the written entries, and their lines that stay dirty, the classes of the next snapshot."""
    for entry in covered:
        size_class = sizes.copied(allocation_range, entry, launches)
        if size_class is None:
            continue
        sizes.now[entry] = size_class
        line = cache.peek(entry)
        if line is not None and line.dirty:
            line.size_class = size_class


def leave_in_l2(l2: RefL2, covered: dict[int, int], now: int, most: int, resident: Callable[[int], bool]) -> None:
    """Put the last lines of a copy into the L2."""
    entries = [entry for entry, mask in covered.items() if mask][-most:]
    for entry in entries:
        if not resident(entry):
            continue
        line = l2.cache.find(entry)
        if line is None:
            l2.evict_if_full(entry, now)
            line = l2.cache.add(entry)
        line.valid |= covered[entry]
        line.pending &= ~covered[entry]


def free(l2: RefL2, allocation_range: RefAllocationRange, counts: Counter[str]) -> None:
    """Drop the allocation's lines from the L2 without a write-back."""
    for entry in range(allocation_range.first, allocation_range.end):
        l2.drop_copies(entry, 15)
        line = l2.cache.drop(entry)
        if line is not None:
            counts["l2.dirty_sectors_freed"] += line.dirty.bit_count()
