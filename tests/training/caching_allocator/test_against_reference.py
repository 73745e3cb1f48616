"""The allocator and its reference model serve every random program alike, to the address."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.training.caching_allocator import AllocationFailure, AllocatorSettings, CudaAllocator
from buddysim.training.caching_allocator.blocks import SegmentBlock
from buddysim.training.caching_allocator.driver import DeviceMemory
from tests.reference.training.ref_caching_allocator import MIB, RefCachingAllocator, RefOutOfMemory

SIZES = st.one_of(
    st.integers(1, 5000),
    st.sampled_from([512, 513, MIB // 2, MIB - 511, MIB, MIB + 1, 2 * MIB, 10 * MIB - 1, 10 * MIB, 10 * MIB + 1]),
    st.integers(1, 40).map(lambda count: count * MIB),
    st.integers(1, 60 * MIB),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("allocate"), SIZES, st.sampled_from([0, 0, 0, 7])),
        st.tuples(st.sampled_from(["free", "free", "request", "complete"]), st.integers(0, 30), st.just(0)),
        st.tuples(st.just("empty"), st.just(0), st.just(0)),
    ),
    max_size=60,
)
SETTINGS = st.builds(
    AllocatorSettings,
    max_split_size=st.sampled_from([None, None, 20 * MIB, 32 * MIB]),
    max_non_split_rounding=st.sampled_from([None, 24 * MIB]),
    garbage_collection_threshold=st.sampled_from([0.0, 0.0, 0.3, 0.6]),
    roundup_power2_divisions=st.sampled_from([(0,) * 16, (4,) * 16, (1, 2, 4, 8, *(2,) * 12)]),
    expandable_segments=st.booleans(),
    large_segment_size=st.sampled_from([20 * MIB, 12 * MIB]),
    per_process_memory_fraction=st.sampled_from([1.0, 0.7]),
)


PROGRAMS = {"options": SETTINGS, "capacity": st.sampled_from([None, 100 * MIB, 300 * MIB]), "steps": STEPS}


@settings(max_examples=25, deadline=None)
@given(**PROGRAMS)
def test_both_serve_a_program_alike(
    options: AllocatorSettings, capacity: int | None, steps: list[tuple[str, int, int]]
) -> None:
    serve_alike(options, capacity, steps)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(**PROGRAMS)
def test_both_serve_many_programs_alike(
    options: AllocatorSettings, capacity: int | None, steps: list[tuple[str, int, int]]
) -> None:
    serve_alike(options, capacity, steps)


def serve_alike(options: AllocatorSettings, capacity: int | None, steps: list[tuple[str, int, int]]) -> None:
    """Run a program through both and compare addresses, bytes and free blocks after each step."""
    fast = CudaAllocator(options, DeviceMemory(capacity))
    slow = RefCachingAllocator(options, DeviceMemory(capacity))
    live: list[tuple[SegmentBlock, int]] = []
    pending: list[tuple[SegmentBlock, int]] = []
    for action, number, stream in steps:
        if action == "allocate":
            try:
                block = fast.allocate(number, stream)
                live.append((block, slow.allocate(number, stream)))
            except AllocationFailure:
                try:
                    slow.allocate(number, stream)
                except RefOutOfMemory:
                    continue
                raise
            assert block.address == live[-1][1]
        elif action == "empty":
            fast.release_cached()
            slow.empty_cache()
        elif action == "complete":
            if pending:
                block, address = pending.pop(number % len(pending))
                fast.complete_free(block)
                slow.complete_free(address)
        elif live:
            block, address = live.pop(number % len(live))
            fast.request_free(block)
            slow.request_free(address)
            if action == "request":
                pending.append((block, address))
            else:
                fast.complete_free(block)
                slow.complete_free(address)
        usage = fast.usage
        assert (usage.allocated, usage.active, usage.requested, usage.reserved) == (
            slow.allocated, slow.active, slow.requested, slow.reserved,
        )  # fmt: skip
        assert fast.driver.used == slow.driver.used == usage.reserved
        free = sorted((block.size, block.address) for pool in fast.pools.values() for block in pool)
        assert free == sorted((part.size, part.address) for part in slow.in_state("free"))
