"""Cached memory that goes back to the driver: when the driver has too little left, and by garbage collection.

Read in PyTorch, ``c10/cuda/CUDACachingAllocator.cpp``: ``release_available_cached_blocks``, ``release_cached_blocks``,
``release_blocks``, ``garbage_collect_cached_blocks``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.training.caching_allocator import expandable
from buddysim.training.caching_allocator.blocks import FreeBlocks, SegmentBlock

if TYPE_CHECKING:
    from buddysim.training.caching_allocator.allocator import CudaAllocator


def release_oversize(allocator: CudaAllocator, pool: FreeBlocks, rounded: int) -> bool:
    """Give back blocks too large to be split, enough for a request; whether that sufficed.

    The smallest one that is large enough, else the largest ones until they are.
    """
    limit = allocator.settings.max_split_size
    if limit is None:
        return False
    needed = max(rounded, limit)
    index = pool.first_of(needed)
    if index < len(pool.keys) and not pool.at(index).expandable:
        _release(allocator, pool.at(index))
        return True
    released = 0
    for block in reversed([pool.at(each) for each in range(index)]):
        if released >= needed or block.size < limit:
            break
        if not block.expandable:
            released += block.size
            _release(allocator, block)
    return released >= needed


def release_all(allocator: CudaAllocator) -> None:
    """Give back every segment that is free as a whole, and the free pages of expandable ones: large pools first."""
    for pool in _pools(allocator):
        blocks = list(pool)
        for block in blocks:
            if not block.expandable and not block.split:
                _release(allocator, block)
        for block in blocks:
            if block.expandable:
                expandable.unmap(allocator, block)


def collect_garbage(allocator: CudaAllocator) -> None:
    """Give back segments that weren't used for long, once more than a fraction of the memory is reserved.

    Those go first that are at least as old as the mean; a block's age is the number of searches in its pool since it
    was freed.
    """
    threshold = int(allocator.settings.garbage_collection_threshold * allocator.limit)
    excess = allocator.usage.reserved - threshold
    if excess <= 0:
        return
    ages = [(block, block.pool.searches.count - block.age) for block in _unsplit_large(allocator)]
    reclaimed, freed = 0, True
    while reclaimed < excess and freed and ages:
        mean = sum(age for _, age in ages) / len(ages)
        old = [block for block, age in ages if age >= mean and not block.expandable]
        freed = bool(old)
        for block in old:
            reclaimed += block.size
            _release(allocator, block)
        ages = [(block, age) for block, age in ages if block not in old]


def _unsplit_large(allocator: CudaAllocator) -> list[SegmentBlock]:
    return [block for pool in _pools(allocator) if not pool.small for block in pool if not block.split]


def _pools(allocator: CudaAllocator) -> list[FreeBlocks]:
    """The pools that aren't the program's own, large ones first, by stream."""
    pools = [(small, stream, pool) for (stream, small, owner), pool in allocator.pools.items() if owner == (0, 0)]
    return [pool for _, _, pool in sorted(pools, key=lambda one: one[:2])]


def _release(allocator: CudaAllocator, block: SegmentBlock) -> None:
    block.pool.remove(block)
    allocator.driver.free(block.address, block.size)
    allocator.usage.reserved -= block.size
    allocator.log.note("segment_free", block.address, block.size)
