"""Sizes of the CUDA caching allocator: what a request is rounded to, and its segment.

Read in PyTorch 2.13, ``c10/core/AllocatorConfig.h`` (the constants) and ``c10/cuda/CUDACachingAllocator.cpp``
(``round_size``, ``roundup_power2_next_division``, ``get_pool``, ``get_allocation_size``).
"""

from __future__ import annotations

from buddysim.training.options.allocator_settings import INTERVALS, AllocatorSettings

MIN_BLOCK = 512
"""Every size is a multiple of this number of bytes."""
SMALL_REQUEST = 1 << 20
"""Largest request of the small pool, in bytes."""
SMALL_SEGMENT = 2 << 20
"""Segments of the small pool, in bytes."""
LARGE_REQUEST = 10 << 20
"""Requests of at least so many bytes have a segment of their own size."""
PAGE = 2 << 20
"""Larger segments are multiples of this number of bytes."""
_FIRST_INTERVAL = 20


def rounded_size(requested: int, settings: AllocatorSettings) -> int:
    """Return the bytes of a block for a request."""
    if requested < MIN_BLOCK:
        return MIN_BLOCK
    interval = min(max(requested.bit_length() - 1 - _FIRST_INTERVAL, 0), INTERVALS - 1)
    divisions = settings.roundup_power2_divisions[interval]
    if divisions > 1 and requested > MIN_BLOCK * divisions:
        return _next_division(requested, divisions)
    return -(-requested // MIN_BLOCK) * MIN_BLOCK


def _next_division(requested: int, divisions: int) -> int:
    """The next of the steps that divide the range between two powers of two.

    The result of a request of over 512 B times the divisions is a multiple of 512 B.
    """
    floor = 1 << (requested.bit_length() - 1)
    step = floor // divisions
    return -(-requested // step) * step


def segment_size(rounded: int, settings: AllocatorSettings) -> int:
    """Return the bytes that the driver is requested to allocate for a block that no cached block can serve."""
    if rounded <= SMALL_REQUEST:
        return SMALL_SEGMENT
    if rounded < LARGE_REQUEST:
        return settings.large_segment_size
    return -(-rounded // PAGE) * PAGE


def expandable_page(small: bool, settings: AllocatorSettings) -> int:
    """Return the bytes of a page of an expandable segment."""
    return SMALL_SEGMENT if small else settings.large_segment_size
