"""The CUDA caching allocator of PyTorch: blocks of segments that it obtains from the driver and keeps.

Read in PyTorch, ``c10/cuda/CUDACachingAllocator.cpp``, class ``DeviceCachingAllocator``: ``malloc``,
``get_free_block``, ``alloc_block``, ``should_split``, ``alloc_found_block``, ``free``, ``free_block``,
``try_merge_blocks``. A request is served by the smallest free block that fits, of the lowest address among equal ones;
what is left of it stays free. If there is none, the driver is requested a segment, and if that fails cached blocks are
given back and it is tried again.

The readable reference is ``tests/reference/training/ref_caching_allocator.py``; both agree on every random program.
"""

from __future__ import annotations

from bisect import bisect_left

from buddysim.training.caching_allocator import expandable, release
from buddysim.training.caching_allocator.blocks import ADDRESS_BITS, FreeBlocks, SearchCount, SegmentBlock, merge
from buddysim.training.caching_allocator.driver import DeviceMemory
from buddysim.training.caching_allocator.rounding import MIN_BLOCK, SMALL_REQUEST, rounded_size, segment_size
from buddysim.training.caching_allocator.segment_log import SegmentLog
from buddysim.training.caching_allocator.usage import AllocatorUsage
from buddysim.training.options.allocator_settings import AllocatorSettings

_UNLIMITED = 1 << 62
#: Number of a memory pool that the program made.
Owner = tuple[int, int]
DEFAULT_OWNER: Owner = (0, 0)


class AllocationFailure(Exception):
    """A request that neither cached blocks nor the driver can serve.

    Attributes
    ----------
    requested, rounded : bytes of the request, and of the block that it needs
    allocated, reserved : bytes in use by tensors, and taken from the driver, when it fails
    """

    def __init__(self, requested: int, rounded: int, usage: AllocatorUsage) -> None:
        super().__init__(f"{requested} bytes requested, {usage.reserved} reserved, {usage.allocated} of them in use")
        self.requested, self.rounded = requested, rounded
        self.allocated, self.reserved = usage.allocated, usage.reserved


class CudaAllocator:
    """The allocator of one GPU.

    Parameters
    ----------
    settings : as the environment variable has them
    driver : where segments come from; without a limit if not given
    device_memory : bytes of the GPU, of which the process may use a fraction; those of the driver if not given

    Attributes
    ----------
    usage : bytes in use, and their peaks
    log : segments taken and given back, newest last
    limit : bytes that it may reserve
    """

    def __init__(
        self,
        settings: AllocatorSettings | None = None,
        driver: DeviceMemory | None = None,
        device_memory: int | None = None,
    ) -> None:
        self.settings = settings or AllocatorSettings()
        self.driver = driver or DeviceMemory()
        memory = self.driver.capacity if device_memory is None else device_memory
        self.limit = _UNLIMITED if memory is None else int(self.settings.per_process_memory_fraction * memory)
        self.usage = AllocatorUsage()
        self.log = SegmentLog()
        self.retries = 0
        self.max_split = self.settings.max_split_size or _UNLIMITED
        self.max_excess = self.settings.max_non_split_rounding or self.settings.large_segment_size
        self.collects = self.settings.garbage_collection_threshold > 0 and memory is not None
        self.pools: dict[tuple[int, bool, Owner], FreeBlocks] = {}
        self._searches: dict[tuple[bool, Owner], SearchCount] = {}
        self._requests: dict[tuple[int, int, Owner], tuple[int, FreeBlocks]] = {}

    def allocate(self, requested: int, stream: int = 0, owner: Owner = DEFAULT_OWNER) -> SegmentBlock:
        """Serve a request.

        Parameters
        ----------
        requested : bytes
        stream : blocks of one stream serve no other
        owner : memory pool of the program; (0, 0) is the default one

        Raises
        ------
        AllocationFailure
            too little memory
        """
        request = requested, stream, owner
        known = self._requests.get(request)
        if known is None:
            rounded = rounded_size(requested, self.settings)
            known = self._requests[request] = rounded, self.pool(stream, rounded <= SMALL_REQUEST, owner)
        rounded, pool = known
        block = self._cached(pool, rounded)
        if block is None:
            block = self._new(pool, rounded)
            if block is None:
                raise AllocationFailure(requested, rounded, self.usage)
        self.split(block, rounded)
        block.state = "allocated"
        block.requested = requested
        self.usage.add(block)
        return block

    def free(self, block: SegmentBlock) -> None:
        """Take a block back that no other stream uses."""
        self.request_free(block)
        self.complete_free(block)

    def request_free(self, block: SegmentBlock) -> None:
        """Note that the program is done with a block; other streams may still use it."""
        block.state = "pending"
        self.usage.allocated -= block.size

    def complete_free(self, block: SegmentBlock) -> None:
        """Make a block available again, one with free neighbours."""
        usage = self.usage
        usage.active -= block.size
        usage.requested -= block.requested
        block.state = "free"
        merge(block)
        block.pool.add(block)

    def release_cached(self) -> None:
        """Give all cached memory back that no tensor uses a part of (``torch.cuda.empty_cache``)."""
        release.release_all(self)

    def pool(self, stream: int, small: bool, owner: Owner = DEFAULT_OWNER) -> FreeBlocks:
        """Return the free blocks for requests of a stream: those of up to 1 MiB, or larger ones."""
        pool = self.pools.get((stream, small, owner))
        if pool is None:
            searches = self._searches.setdefault((small, owner), SearchCount())
            pool = self.pools[stream, small, owner] = FreeBlocks(small, searches)
        return pool

    def _cached(self, pool: FreeBlocks, rounded: int) -> SegmentBlock | None:
        """Take the best free block out of a pool."""
        if self.collects:
            pool.searches.count += 1
        keys = pool.keys
        index = bisect_left(keys, rounded << ADDRESS_BITS)
        if index == len(keys):
            return None
        block = pool.by_key[keys[index]]
        if block.expandable:
            index = expandable.best_fit(pool, index, requested=self.settings.expandable_segments)
            if index == len(keys):
                return None
            block = pool.by_key[keys[index]]
        limit = self.max_split
        if limit != _UNLIMITED:
            if rounded < limit <= block.size:
                return None
            if rounded >= limit and block.size >= rounded + self.max_excess:
                return None
        del pool.by_key[keys.pop(index)]
        return block

    def _new(self, pool: FreeBlocks, rounded: int) -> SegmentBlock | None:
        """Take a block from the driver, after giving cached blocks back where it has too little left."""
        if self.collects:
            release.collect_garbage(self)
        block = self._from_driver(pool, rounded)
        if block is None and release.release_oversize(self, pool, rounded):
            block = self._from_driver(pool, rounded)
        if block is None:
            release.release_all(self)
            self.retries += 1
            block = self._from_driver(pool, rounded)
        return block

    def _from_driver(self, pool: FreeBlocks, rounded: int) -> SegmentBlock | None:
        size = segment_size(rounded, self.settings)
        if self.usage.reserved + size > self.limit:
            return None
        if self.settings.expandable_segments:
            return expandable.extend(self, pool, rounded)
        address = self.driver.allocate(size)
        if address is None:
            return None
        self.usage.reserve(size)
        self.log.note("segment_alloc", address, size)
        return SegmentBlock(address, size, pool)

    def split(self, block: SegmentBlock, rounded: int) -> None:
        """Leave what a request doesn't need in the pool."""
        left = block.size - rounded
        pool = block.pool
        if pool.small or self.settings.expandable_segments:
            if left < MIN_BLOCK:
                return
        elif left <= SMALL_REQUEST or rounded >= self.max_split:
            return
        rest = SegmentBlock(block.address + rounded, left, pool, block, block.following, expandable=block.expandable)
        if block.following is not None:
            block.following.previous = rest
        block.following = rest
        block.size = rounded
        pool.add(rest)
