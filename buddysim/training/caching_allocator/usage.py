"""Bytes that the allocator counts, as ``torch.cuda.memory_stats`` names them, and their peaks."""

from __future__ import annotations

from buddysim.training.caching_allocator.blocks import SegmentBlock


class AllocatorUsage:
    """Bytes in use.

    Attributes
    ----------
    requested : of requests that live, before they are rounded
    allocated : of the blocks that serve them
    active : of these, and of blocks that another stream may still use
    reserved : taken from the driver
    peak_requested, peak_allocated, peak_active, peak_reserved : the most of each
    """

    __slots__ = (
        "active",
        "allocated",
        "peak_active",
        "peak_allocated",
        "peak_requested",
        "peak_reserved",
        "requested",
        "reserved",
    )

    def __init__(self) -> None:
        self.requested = self.allocated = self.active = self.reserved = 0
        self.peak_requested = self.peak_allocated = self.peak_active = self.peak_reserved = 0

    def add(self, block: SegmentBlock) -> None:
        """Count a block that is allocated."""
        self.allocated += block.size
        self.active += block.size
        self.requested += block.requested
        if self.allocated > self.peak_allocated:
            self.peak_allocated = self.allocated
        if self.active > self.peak_active:
            self.peak_active = self.active
        if self.requested > self.peak_requested:
            self.peak_requested = self.requested

    def reserve(self, size: int) -> None:
        """Count memory taken from the driver."""
        self.reserved += size
        if self.reserved > self.peak_reserved:
            self.peak_reserved = self.reserved
