"""Puts an allocator into the state of a recorded one: its segments, and their blocks in use."""

from __future__ import annotations

from buddysim.training.caching_allocator.allocator import CudaAllocator
from buddysim.training.caching_allocator.blocks import FreeBlocks, SegmentBlock
from buddysim.training.caching_allocator.rounding import rounded_size
from buddysim.training.caching_allocator.snapshot.read import SnapshotSegment

_SPAN = 1 << 44


def adopt(allocator: CudaAllocator, segments: list[SnapshotSegment]) -> dict[int, SegmentBlock]:
    """Give an allocator segments; return the blocks in use by their address.

    Ranges of expandable segments of one pool are taken to be one segment, as PyTorch makes one for each pool.
    """
    used: dict[int, SegmentBlock] = {}
    tails: dict[FreeBlocks, SegmentBlock] = {}
    for segment in segments:
        pool = allocator.pool(segment.stream, segment.small, segment.owner)
        before = tails.get(pool) if segment.expandable else None
        chain = _Chain(pool, before, segment.expandable)
        if before is not None:
            chain.add(before.address + before.size, segment.address, mapped=False)
        address = segment.address
        for block in segment.blocks:
            chain.add(address, block.address)
            made = chain.add(block.address, block.address + block.size, state=block.state)
            if made is not None:
                made.requested = block.requested
                used[block.address] = made
                allocator.usage.add(made)
                if block.state == "pending":
                    allocator.usage.allocated -= made.size
            address = block.address + block.size
        chain.add(address, segment.address + segment.size)
        allocator.usage.reserve(segment.size)
        allocator.driver.take(segment.size)
        if segment.expandable and chain.last is not None:
            tails[pool] = chain.last
    for pool, last in tails.items():
        end = last.address + last.size
        _Chain(pool, last, expandable=True).add(end, end + _SPAN, mapped=False)
    return used


def adopt_segment(allocator: CudaAllocator, address: int, size: int, pool: FreeBlocks) -> None:
    """Give an allocator a free segment."""
    pool.add(SegmentBlock(address, size, pool))
    allocator.usage.reserve(size)
    allocator.driver.take(size)


def take_at(allocator: CudaAllocator, pool: FreeBlocks, address: int, requested: int) -> SegmentBlock | None:
    """Serve a request with the block at an address; None where that isn't free."""
    holder = next((one for one in pool if one.address <= address < one.address + one.size), None)
    if holder is None:
        return None
    pool.remove(holder)
    if holder.address < address:
        front = SegmentBlock(
            holder.address, address - holder.address, pool, holder.previous, holder, expandable=holder.expandable
        )
        if holder.previous is not None:
            holder.previous.following = front
        holder.previous = front
        holder.size -= front.size
        holder.address = address
        pool.add(front)
    allocator.split(holder, min(rounded_size(requested, allocator.settings), holder.size))
    holder.state = "allocated"
    holder.requested = requested
    allocator.usage.add(holder)
    return holder


class _Chain:
    """Blocks of a segment, made from its beginning on."""

    def __init__(self, pool: FreeBlocks, last: SegmentBlock | None, expandable: bool) -> None:
        self.pool, self.last = pool, last
        self.expandable = _SPAN if expandable else 0

    def add(self, start: int, end: int, state: str = "free", *, mapped: bool = True) -> SegmentBlock | None:
        """Add a block from an address to another; none if they are equal."""
        if start >= end:
            return None
        block = SegmentBlock(start, end - start, self.pool, self.last, mapped=mapped, expandable=self.expandable)
        if self.last is not None:
            self.last.following = block
        self.last = block
        if state == "allocated" or state == "pending":
            block.state = state  # type: ignore[assignment]
        elif mapped:
            self.pool.add(block)
        else:
            self.pool.unmapped[start] = block
        return block
