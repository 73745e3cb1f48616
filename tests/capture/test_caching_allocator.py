"""PyTorch's allocator follows its documented rules, and keeps invariants under random requests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from buddysim.capture.torch.caching_allocator import CachingAllocator

KIB, MIB = 1 << 10, 1 << 20


def segments(*sizes: int) -> list[int]:
    allocator = CachingAllocator()
    for size in sizes:
        allocator.allocate(size)
    return [segment.bytes for segment in allocator.segments]


def test_segments_by_size() -> None:
    assert segments(1) == [2 * MIB]
    assert segments(MIB) == [2 * MIB]
    assert segments(MIB + 1) == [20 * MIB]
    assert segments(10 * MIB - 512) == [20 * MIB]
    assert segments(10 * MIB) == [10 * MIB]
    assert segments(21 * MIB + 1) == [22 * MIB]


def test_small_and_large_blocks_lie_in_different_segments() -> None:
    assert segments(512, 2 * MIB, 1024) == [2 * MIB, 20 * MIB]


def test_sizes_are_multiples_of_512() -> None:
    allocator = CachingAllocator()
    first, second = allocator.allocate(1), allocator.allocate(513)
    assert second - first == 512
    assert allocator.allocate(1) - second == 1024


def test_large_block_is_split_only_if_remainder_exceeds_1_mib() -> None:
    allocator = CachingAllocator()
    first = allocator.allocate(12 * MIB)
    allocator.release(first)
    assert allocator.allocate(11 * MIB) == first
    allocator.release(first)
    assert allocator.allocate(11 * MIB - 512) == first
    assert allocator.allocate(1 * MIB + 512) == first + 11 * MIB - 512  # what was split off: 1 MiB + 512 B


def test_the_smallest_block_that_fits_is_taken() -> None:
    allocator = CachingAllocator()
    blocks = [allocator.allocate(size * KIB) for size in (64, 1, 32, 1, 48, 1)]
    for number in (0, 2, 4):
        allocator.release(blocks[number])
    assert allocator.allocate(40 * KIB) == blocks[4]
    assert allocator.allocate(32 * KIB) == blocks[2]


def test_neighbours_merge() -> None:
    allocator = CachingAllocator()
    blocks = [allocator.allocate(512 * KIB) for _ in range(4)]
    for number in (0, 2, 1, 3):
        allocator.release(blocks[number])
    assert allocator.allocate(MIB) == blocks[0]
    assert len(allocator.segments) == 1


def test_a_block_is_released_once() -> None:
    allocator = CachingAllocator()
    block = allocator.allocate(512)
    allocator.release(block)
    with pytest.raises(ValueError, match="released twice"):
        allocator.release(block)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 30 * MIB)), max_size=60))
def test_blocks_never_overlap_and_lie_in_their_segments(steps: list[tuple[bool, int]]) -> None:
    allocator = CachingAllocator()
    living: dict[int, int] = {}
    for give_back, size in steps:
        if give_back and living:
            base = sorted(living)[size % len(living)]
            allocator.release(base)
            del living[base]
            continue
        base = allocator.allocate(size)
        segment = allocator.segments[allocator.segment_of(base)]
        assert segment.base <= base
        assert base + size <= segment.base + segment.bytes
        assert base % 512 == 0
        for other, other_size in living.items():
            assert base + size <= other or other + other_size <= base
        living[base] = size
    for base in sorted(living):
        allocator.release(base)
    for segment in allocator.segments:  # all is whole again
        assert allocator._blocks[segment.base].bytes == segment.bytes
