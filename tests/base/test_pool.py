"""The memory pool equals its reference model, and results computed by hand."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from buddysim.base.memory_pool import MemoryPool, PoolExhausted
from tests.reference.base.ref_pool import RefPool


def test_requests_are_rounded_and_cut_from_the_start():
    pool = MemoryPool(4096)
    assert [pool.allocate(size) for size in (1, 512, 513)] == [0, 512, 1024]
    assert pool.used_bytes == 512 + 512 + 1024
    assert pool.high_water == 2048


def holes(fit: str) -> MemoryPool:
    """Free: [512, 2560), [3072, 4096) and [4608, 8192), between blocks of 512 bytes."""
    pool = MemoryPool(8192, fit)
    for size in (512, 2048, 512, 1024, 512):
        pool.allocate(size)
    pool.release(512)
    pool.release(3072)
    return pool


def test_best_fit_takes_the_smallest_block_and_first_fit_the_lowest():
    assert holes("best-fit").allocate(1000) == 3072
    assert holes("first-fit").allocate(1000) == 512


def test_lowest_of_equal_blocks_is_taken():
    pool = MemoryPool(5 * 512)
    for _ in range(5):
        pool.allocate(512)
    pool.release(3 * 512)
    pool.release(512)
    assert pool.allocate(512) == 512


def test_neighbours_merge():
    pool = MemoryPool(3 * 512)
    first, second, third = (pool.allocate(512) for _ in range(3))
    pool.release(first)
    pool.release(third)
    assert pool.largest_free == 512
    pool.release(second)
    assert pool.allocate(3 * 512) == 0


def test_failure_tells_a_lack_of_memory_from_fragmentation():
    pool = holes("best-fit")
    with pytest.raises(PoolExhausted) as fragmented:
        pool.allocate(4096)
    assert fragmented.value.fragmented
    assert fragmented.value.shortfall_bytes == 4096 - 3584
    with pytest.raises(PoolExhausted) as full:
        pool.allocate(8192)
    assert not full.value.fragmented
    assert full.value.shortfall_bytes == 8192 - (2048 + 1024 + 3584)


@given(
    fit=st.sampled_from(["best-fit", "first-fit"]),
    capacity=st.integers(0, 40).map(lambda units: units * 512 + 100),
    requests=st.lists(st.one_of(st.integers(0, 6000), st.integers(-20, -1)), max_size=60),
)
def test_agrees_with_its_reference_model(fit: str, capacity: int, requests: list[int]):
    """Yield requests in bytes; a negative number frees one of the live blocks."""
    pool, naive = MemoryPool(capacity, fit), RefPool(capacity, fit)
    for request in requests:
        if request < 0:
            if naive.live:
                address = sorted(naive.live)[-request % len(naive.live)]
                pool.release(address)
                naive.release(address)
        else:
            outcomes: list[object] = []
            for each in (pool, naive):
                try:
                    outcomes.append(each.allocate(request))
                except PoolExhausted as short:
                    outcomes.append((short.requested_bytes, short.free_bytes, short.largest_bytes))
            assert outcomes[0] == outcomes[1]
        assert pool.live == naive.live
        assert pool.free_bytes == sum(size for _, size in naive.gaps())
        blocks = sorted(pool.live.items())
        assert all(a + size <= b for (a, size), (b, _) in pairwise(blocks))
