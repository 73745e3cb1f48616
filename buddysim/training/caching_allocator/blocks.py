"""Blocks of memory, and the free ones in the order in which the allocator looks for one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Literal

from buddysim.base.errors import BuddysimError

ADDRESS_BITS = 48
"""Addresses are smaller than two to this power, so that a size and an address make one number."""

#: `pending`: given back by the program, but a stream may still use it.
BlockState = Literal["free", "allocated", "pending"]


class SegmentBlock:
    """A part of a segment.

    Attributes
    ----------
    address, size : where it begins, its bytes
    requested : bytes of the request that it serves
    pool : where it goes when it is free
    state : "free", "allocated" or "pending"
    previous, following : its neighbours in the segment
    mapped : False for addresses of an expandable segment that have no memory
    expandable : bytes of the whole segment if that is expandable, else 0
    age : searches of its pool before it was last freed
    """

    __slots__ = (
        "address",
        "age",
        "expandable",
        "following",
        "mapped",
        "pool",
        "previous",
        "requested",
        "size",
        "state",
    )

    def __init__(
        self,
        address: int,
        size: int,
        pool: FreeBlocks,
        previous: SegmentBlock | None = None,
        following: SegmentBlock | None = None,
        *,
        mapped: bool = True,
        expandable: int = 0,
    ) -> None:
        self.address = address
        self.size = size
        self.requested = 0
        self.pool = pool
        self.state: BlockState = "free"
        self.previous = previous
        self.following = following
        self.mapped = mapped
        self.expandable = expandable
        self.age = 0

    @property
    def split(self) -> bool:
        """Whether it is only a part of its segment."""
        return self.previous is not None or self.following is not None


class SearchCount:
    """How often a pool was searched, on all streams together."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class FreeBlocks:
    """The free blocks of a pool: best fit first, the lowest address among equal sizes.

    Attributes
    ----------
    keys : size and address of each as one number, sorted
    by_key : the blocks
    unmapped : parts of expandable segments without memory, by address
    small : whether it serves requests of up to 1 MiB
    searches : where garbage collection counts them
    """

    __slots__ = ("by_key", "keys", "searches", "small", "unmapped")

    def __init__(self, small: bool, searches: SearchCount) -> None:
        self.small = small
        self.keys: list[int] = []
        self.by_key: dict[int, SegmentBlock] = {}
        self.unmapped: dict[int, SegmentBlock] = {}
        self.searches = searches

    def add(self, block: SegmentBlock) -> None:
        """Make a block available.

        Raises
        ------
        BuddysimError
            it is available already, as in a record whose driver hands out memory twice
        """
        block.age = self.searches.count
        key = block.size << ADDRESS_BITS | block.address
        if key in self.by_key:
            raise BuddysimError(
                f"{block.size} B at address {block.address:#x}: handed out twice: expected segments that don't overlap"
            )
        self.by_key[key] = block
        self.keys.insert(bisect_left(self.keys, key), key)

    def remove(self, block: SegmentBlock) -> None:
        """Take a block out."""
        key = block.size << ADDRESS_BITS | block.address
        del self.by_key[key]
        del self.keys[bisect_left(self.keys, key)]

    def first_of(self, size: int) -> int:
        """Return the index in `keys` of the smallest block of at least `size` bytes."""
        return bisect_left(self.keys, size << ADDRESS_BITS)

    def at(self, index: int) -> SegmentBlock:
        """Return the block of an index in `keys`."""
        return self.by_key[self.keys[index]]

    def __iter__(self) -> Iterator[SegmentBlock]:
        """The free blocks as they are now, smallest first."""
        return iter([self.by_key[key] for key in self.keys])


def merge(block: SegmentBlock) -> None:
    """Make a block one with its neighbours of the same kind, which leave their pool."""
    neighbour = block.previous
    if neighbour is not None and neighbour.state == "free" and neighbour.mapped == block.mapped:
        _leave_pool(neighbour)
        block.address = neighbour.address
        block.size += neighbour.size
        block.previous = neighbour.previous
        if block.previous is not None:
            block.previous.following = block
    neighbour = block.following
    if neighbour is not None and neighbour.state == "free" and neighbour.mapped == block.mapped:
        _leave_pool(neighbour)
        block.size += neighbour.size
        block.following = neighbour.following
        if block.following is not None:
            block.following.previous = block


def _leave_pool(block: SegmentBlock) -> None:
    if block.mapped:
        block.pool.remove(block)
    else:
        del block.pool.unmapped[block.address]
