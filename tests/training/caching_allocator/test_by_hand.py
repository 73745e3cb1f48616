"""Sequences of requests whose addresses and bytes follow from the allocator's documented rules, on paper."""

from __future__ import annotations

import pytest

from buddysim.training.caching_allocator import AllocationFailure, AllocatorSettings, CudaAllocator
from buddysim.training.caching_allocator.driver import GRANULE, DeviceMemory
from buddysim.training.caching_allocator.rounding import rounded_size, segment_size

MIB = 1 << 20


def allocator(text: str = "", capacity: int | None = None) -> CudaAllocator:
    return CudaAllocator(AllocatorSettings.parse(text), DeviceMemory(capacity))


@pytest.mark.parametrize(
    ("requested", "rounded", "segment"),
    [
        (1, 512, 2 * MIB),
        (512, 512, 2 * MIB),
        (513, 1024, 2 * MIB),
        (MIB, MIB, 2 * MIB),
        (MIB + 1, MIB + 512, 20 * MIB),
        (10 * MIB - 512, 10 * MIB - 512, 20 * MIB),
        (10 * MIB, 10 * MIB, 10 * MIB),
        (10 * MIB + 1, 10 * MIB + 512, 12 * MIB),
        (448 * MIB, 448 * MIB, 448 * MIB),
    ],
)
def test_sizes(requested: int, rounded: int, segment: int) -> None:
    settings = AllocatorSettings()
    assert rounded_size(requested, settings) == rounded
    assert segment_size(rounded, settings) == segment


@pytest.mark.parametrize(
    ("text", "requested", "rounded"),
    [
        ("roundup_power2_divisions:4", 1200 * 1024, 1280 * 1024),  # between 1 and 2 MiB: 1, 1.25, 1.5, 1.75
        ("roundup_power2_divisions:4", 1024 * 1024, 1024 * 1024),
        ("roundup_power2_divisions:4", 2048, 2048),  # at most 512 B x 4: multiples of 512 B
        ("roundup_power2_divisions:4", 2049, 2560),  # between 2048 and 4096: steps of 512
        ("roundup_power2_divisions:[2:8,>:2]", 3 * MIB + 1, 3 * MIB + MIB // 4),  # eighths of 2 MiB
        ("roundup_power2_divisions:[2:8,>:2]", 5 * MIB, 6 * MIB),  # halves of 4 MiB
        ("roundup_power2_divisions:[2:0,>:2]", 1000 * 1024, 1000 * 1024),
        ("roundup_power2_divisions:1", 3 * MIB + 1, 3 * MIB + 512),
    ],
)
def test_rounding_to_parts_of_powers_of_two(text: str, requested: int, rounded: int) -> None:
    assert rounded_size(requested, AllocatorSettings.parse(text)) == rounded


def test_small_requests_fill_segments_of_2_mib() -> None:
    """512 B, 1 MiB, 1 MiB - 512 B fill one segment; the next byte needs another."""
    one = allocator()
    first, second, third = (one.allocate(size) for size in (1, MIB, MIB - 512))
    assert [block.address - first.address for block in (first, second, third)] == [0, 512, MIB + 512]
    assert one.usage.reserved == one.usage.allocated == 2 * MIB
    one.allocate(1)
    assert one.usage.reserved == 4 * MIB


def test_requests_of_1_to_10_mib_divide_segments_of_20_mib() -> None:
    """8 + 8 MiB leave 4: the next 8 needs a segment, the next 4 does not; what is at most 1 MiB is not split off."""
    one = allocator()
    first, second, third, fourth = (one.allocate(size * MIB) for size in (8, 8, 8, 4))
    assert [block.address - first.address for block in (second, fourth)] == [8 * MIB, 16 * MIB]
    assert third.address != first.address + 16 * MIB
    assert one.usage.reserved == 40 * MIB
    fifth = one.allocate(11 * MIB + MIB // 2)  # of the 12 MiB left of the second segment
    assert fifth.size == 12 * MIB
    assert one.usage.allocated == 40 * MIB


def test_a_remainder_of_more_than_1_mib_is_split_off_a_large_segment() -> None:
    one = allocator()
    assert one.allocate(13 * MIB).size == 14 * MIB  # 1 MiB left
    assert one.allocate(13 * MIB - 512).size == 13 * MIB - 512  # 1 MiB and 512 B left
    assert one.usage.reserved == 28 * MIB


def test_the_smallest_block_that_fits_serves_and_the_lowest_address_among_equal_ones() -> None:
    one = allocator()
    blocks = [one.allocate(size * MIB) for size in (40, 30, 30, 50)]
    for block in blocks:
        one.free(block)
    again = one.allocate(28 * MIB + MIB // 2)
    assert again.address == min(blocks[1].address, blocks[2].address)
    assert one.usage.reserved == 150 * MIB


def test_free_neighbours_become_one_block() -> None:
    """Of a segment of 20 MiB: the parts of 6 + 6 + 8 MiB serve 20 MiB again once all are free."""
    one = allocator()
    parts = [one.allocate(size * MIB) for size in (6, 6, 8)]
    for index in (0, 2, 1):
        one.free(parts[index])
    assert one.allocate(20 * MIB).address == parts[0].address
    assert one.usage.reserved == 20 * MIB


def test_blocks_of_a_stream_serve_no_other() -> None:
    one = allocator()
    one.free(one.allocate(30 * MIB, stream=0))
    one.allocate(30 * MIB, stream=1)
    assert one.usage.reserved == 60 * MIB


def test_a_block_that_another_stream_uses_stays_active() -> None:
    one = allocator()
    block = one.allocate(30 * MIB)
    one.request_free(block)
    assert (one.usage.allocated, one.usage.active) == (0, 30 * MIB)
    one.allocate(30 * MIB)
    assert one.usage.peak_active == one.usage.reserved == 60 * MIB
    assert one.usage.peak_allocated == 30 * MIB


def test_a_block_above_the_split_size_serves_only_requests_nearly_as_large() -> None:
    """Split size 32 MiB: 60 MiB cached serve neither 20 MiB nor 38 MiB (22 more), but 42 MiB (18 more), unsplit."""
    one = allocator("max_split_size_mb:32")
    one.free(one.allocate(60 * MIB))
    one.allocate(20 * MIB)
    one.allocate(38 * MIB)
    assert one.usage.reserved == 118 * MIB
    assert one.allocate(42 * MIB).size == 60 * MIB
    assert one.usage.reserved == 118 * MIB


def test_cached_blocks_go_back_before_a_request_fails() -> None:
    """Of 100 MiB: 40 cached and 50 in use leave 10, so 44 are served only once the 40 are given back."""
    one = allocator(capacity=100 * MIB)
    one.free(one.allocate(40 * MIB))
    one.allocate(50 * MIB)
    one.allocate(44 * MIB)
    assert (one.retries, one.usage.reserved, one.usage.peak_reserved) == (1, 94 * MIB, 94 * MIB)
    with pytest.raises(AllocationFailure) as failure:
        one.allocate(22 * MIB)
    assert (failure.value.requested, failure.value.reserved, failure.value.allocated) == (22 * MIB, 94 * MIB, 94 * MIB)


def test_a_segment_in_use_in_part_does_not_go_back() -> None:
    """Fragmentation: of 40 MiB reserved, 4 MiB in use in two segments keep 20 more from being served in 50."""
    one = allocator(capacity=50 * MIB)
    blocks = [one.allocate(size * MIB) for size in (9, 9, 2, 9, 9, 2)]
    for index in (0, 1, 3, 4):
        one.free(blocks[index])
    assert (one.usage.reserved, one.usage.allocated) == (40 * MIB, 4 * MIB)
    with pytest.raises(AllocationFailure):
        one.allocate(20 * MIB)
    assert one.usage.reserved == 40 * MIB


def test_only_oversize_blocks_go_back_where_they_suffice() -> None:
    """Split size 32 MiB of 100: 40 MiB serve no 20, which is obtained in their stead; 20 cached stay cached."""
    one = allocator("max_split_size_mb:32", capacity=100 * MIB)
    cached = one.allocate(20 * MIB)
    one.free(one.allocate(40 * MIB))
    one.free(cached)
    one.allocate(30 * MIB)
    one.allocate(26 * MIB)
    assert (one.retries, one.usage.reserved) == (0, 76 * MIB)


def test_expandable_segments_grow_by_pages_of_20_mib() -> None:
    """30 MiB need two pages, 50 more MiB two more; freed, they serve 80 of 100 MiB."""
    one = allocator("expandable_segments:True")
    first = one.allocate(30 * MIB)
    assert one.usage.reserved == 40 * MIB
    second = one.allocate(50 * MIB)  # 10 MiB of the second page, then two more pages
    assert second.address == first.address + 30 * MIB
    assert one.usage.reserved == 80 * MIB
    one.free(first)
    one.free(second)
    assert one.allocate(100 * MIB).address == first.address
    assert one.usage.reserved == 100 * MIB


def test_expandable_segments_split_off_512_bytes() -> None:
    one = allocator("expandable_segments:True")
    assert one.allocate(20 * MIB - 512).size == 20 * MIB - 512
    assert one.allocate(100).size == 512  # of the small pool, pages of 2 MiB
    assert one.usage.reserved == 22 * MIB


def test_free_pages_of_expandable_segments_go_back() -> None:
    """Of five pages, 50 MiB are free from 10 to 60: pages two and three lie whole within."""
    one = allocator("expandable_segments:True", capacity=100 * MIB)
    first, middle, last = (one.allocate(size * MIB) for size in (10, 50, 40))
    one.free(middle)
    one.release_cached()
    assert one.usage.reserved == 60 * MIB
    assert [event.action for event in one.log.taken()] == ["segment_map"] * 3 + ["segment_unmap"]
    assert one.allocate(40 * MIB).address == middle.address
    assert last.address == first.address + 60 * MIB
    assert one.usage.reserved == 100 * MIB


def test_the_limit_counts_a_request_whole_where_a_part_of_it_is_mapped() -> None:
    """10 of 45 MiB are free in a mapped page, so 40 more would do; but 60 reserved and 46 exceed 100."""
    one = allocator("expandable_segments:True", capacity=100 * MIB)
    blocks = [one.allocate(size * MIB) for size in (10, 50, 40)]
    one.free(blocks[1])
    one.release_cached()
    with pytest.raises(AllocationFailure):
        one.allocate(45 * MIB)


def test_garbage_collection_gives_the_oldest_segments_back() -> None:
    """Half of 200 MiB is the threshold. 40 + 44 MiB unused for 7 searches go, 30 unused for 1 stay: the mean is 5."""
    one = allocator("garbage_collection_threshold:0.5", capacity=200 * MIB)
    for block in [one.allocate(size * MIB) for size in (40, 44, 30)]:
        one.free(block)
    for _ in range(6):
        one.free(one.allocate(30 * MIB))
    assert one.usage.reserved == 114 * MIB
    one.allocate(60 * MIB)
    assert one.usage.reserved == (30 + 60) * MIB
    assert one.retries == 0


def test_garbage_collection_waits_for_its_threshold() -> None:
    one = allocator("garbage_collection_threshold:0.6", capacity=200 * MIB)
    for block in [one.allocate(size * MIB) for size in (40, 44, 30)]:
        one.free(block)
    one.allocate(60 * MIB)
    assert one.usage.reserved == (40 + 44 + 30 + 60) * MIB


def test_a_fraction_of_the_memory_is_the_limit() -> None:
    one = allocator("per_process_memory_fraction:0.5", capacity=100 * MIB)
    one.allocate(50 * MIB)
    with pytest.raises(AllocationFailure):
        one.allocate(2 * MIB)


def test_the_driver_gives_addresses_downwards_and_fills_what_is_left_of_its_ranges() -> None:
    """As in snapshots of real runs: 44 MiB leave 20 of 64, which serve the first later request that fits."""
    driver = DeviceMemory()
    first, second = driver.allocate(44 * MIB), driver.allocate(44 * MIB)
    assert first is not None
    assert second is not None
    assert first - second == 2 * GRANULE
    assert driver.allocate(16 * MIB) == second + 44 * MIB
    assert driver.allocate(20 * MIB) == first + 44 * MIB
    assert driver.allocate(2 * MIB) == second + 60 * MIB
    driver.free(first, 44 * MIB)
    assert driver.allocate(40 * MIB) == first
