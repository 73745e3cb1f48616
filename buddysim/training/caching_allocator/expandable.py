"""Expandable segments: one range of addresses for each pool, to which memory is added page by page.

Read in PyTorch, ``c10/cuda/CUDACachingAllocator.cpp``, Note [Expandable Segments], ``find_expandable_block``,
``map_block``, ``try_allocate_expandable_block``, ``unmap_block`` and ``ExpandableSegment``. Pages are 2 MiB in the
small pool, 20 MiB in the large one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.training.caching_allocator.blocks import FreeBlocks, SegmentBlock, merge
from buddysim.training.caching_allocator.rounding import expandable_page

if TYPE_CHECKING:
    from buddysim.training.caching_allocator.allocator import CudaAllocator

_UNLIMITED_ADDRESSES = 1 << 42


def best_fit(pool: FreeBlocks, index: int, *, requested: bool) -> int:
    """Return the index in the pool's keys of the block to take, where the smallest one is of an expandable segment.

    A block at the end of its segment counts as large as the segment can become. Where expandable segments are no longer
    `requested`, blocks of them are passed over; the result may then be the number of keys.
    """
    keys = pool.keys
    if not requested:
        while index < len(keys) and pool.at(index).expandable:
            index += 1
        return index
    while index + 1 < len(keys) and pool.at(index).expandable and _extent(pool.at(index + 1)) < _extent(pool.at(index)):
        index += 1
    return index


def _extent(block: SegmentBlock) -> int:
    following = block.following
    return block.size + (following.size if following is not None and not following.mapped else 0)


def extend(allocator: CudaAllocator, pool: FreeBlocks, rounded: int) -> SegmentBlock | None:
    """Return a block of at least `rounded` bytes after mapping pages for it, or None where memory is too little.

    It begins at the lowest address from which free and unmapped blocks in a row suffice. It isn't in the pool.
    """
    block = _lowest_range(allocator, pool, rounded)
    if not block.mapped and not _map(allocator, block, min(block.size, rounded)):
        return None
    while block.size < rounded:
        following = block.following
        assert following is not None
        if not _map(allocator, following, min(rounded - block.size, following.size)):
            return None
        block = following
    pool.remove(block)
    return block


def _lowest_range(allocator: CudaAllocator, pool: FreeBlocks, rounded: int) -> SegmentBlock:
    for address in sorted(pool.unmapped):
        block = pool.unmapped[address]
        if block.previous is not None and block.previous.state == "free":
            block = block.previous
        if _free_run(block, rounded) >= rounded:
            return block
    page = expandable_page(pool.small, allocator.settings)
    memory = allocator.driver.capacity
    span = _UNLIMITED_ADDRESSES if memory is None else memory + memory // 8
    span = max(-(-span // page), -(-rounded // page)) * page
    segment = SegmentBlock(allocator.driver.reserve(span), span, pool, mapped=False, expandable=span)
    pool.unmapped[segment.address] = segment
    return segment


def _free_run(first: SegmentBlock, enough: int) -> int:
    """Bytes of free and unmapped blocks in a row, counted until they are enough."""
    size = 0
    block: SegmentBlock | None = first
    while size < enough and block is not None and block.state == "free":
        size += block.size
        block = block.following
    return size


def _map(allocator: CudaAllocator, block: SegmentBlock, size: int) -> bool:
    """Add memory to the beginning of an unmapped block, in whole pages; False where too little is left."""
    pool = block.pool
    page = expandable_page(pool.small, allocator.settings)
    mapped = -(-size // page) * page
    if not allocator.driver.available(mapped):
        return False
    allocator.driver.take(mapped)
    address = block.address
    del pool.unmapped[address]
    block.mapped = True
    if mapped < block.size:
        rest = SegmentBlock(
            address + mapped, block.size - mapped, pool, block, block.following, mapped=False,
            expandable=block.expandable,
        )  # fmt: skip
        if block.following is not None:
            block.following.previous = rest
        block.following = rest
        pool.unmapped[rest.address] = rest
        block.size = mapped
    merge(block)
    pool.add(block)
    allocator.usage.reserve(mapped)
    allocator.log.note("segment_map", address, mapped)
    return True


def unmap(allocator: CudaAllocator, block: SegmentBlock) -> None:
    """Give back the pages that lie whole within a free block; a segment without memory is given up."""
    pool = block.pool
    page = expandable_page(pool.small, allocator.settings)
    base = _base(block)
    begin = base + -(-(block.address - base) // page) * page
    end = base + (block.address + block.size - base) // page * page
    if begin >= end:
        return
    pool.remove(block)
    before, after = begin - block.address, block.address + block.size - end
    if before:
        _cut(block, before, before_it=True)
    if after:
        _cut(block, after, before_it=False)
    block.mapped = False
    merge(block)
    pool.unmapped[block.address] = block
    allocator.driver.give_back(end - begin)
    allocator.usage.reserved -= end - begin
    allocator.log.note("segment_unmap", begin, end - begin)
    if not block.split:
        del pool.unmapped[block.address]


def _base(block: SegmentBlock) -> int:
    while block.previous is not None:
        block = block.previous
    return block.address


def _cut(block: SegmentBlock, size: int, *, before_it: bool) -> None:
    """Make a free block of the first or last bytes of a block."""
    pool = block.pool
    block.size -= size
    if before_it:
        part = SegmentBlock(block.address, size, pool, block.previous, block, expandable=block.expandable)
        block.address += size
        if part.previous is not None:
            part.previous.following = part
        block.previous = part
    else:
        end = block.address + block.size
        part = SegmentBlock(end, size, pool, block, block.following, expandable=block.expandable)
        if part.following is not None:
            part.following.previous = part
        block.following = part
    pool.add(part)
