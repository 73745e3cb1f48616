"""Entry numbers of allocations: equal addresses share entries, and the space is as large as the live peak."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import buddysim
import buddysim.trace as bt
from buddysim.buddy import Targets
from buddysim.machine import Machine
from buddysim.replay.address_space import LINES_PER_PAGE, AddressSpace
from buddysim.replay.frames import FrameAllocator
from buddysim.trace import open_trace
from tests.reference.replay.replay import replay
from tests.replay.events import BASE, load_block, provenance
from tests.replay.test_dirty_sectors import LINE, accesses
from tests.trace.builders import records

PAGE = 2 << 20


def layout_of(path):
    with open_trace(path) as trace:
        return AddressSpace(trace)


def churn(path, bases, size=LINE, stream=0):
    """Write a trace with an allocation at each base, freed before the next, and a copy to each."""
    with bt.TraceWriter(path, provenance()) as writer:
        for base in bases:
            allocation = writer.add_allocation("a", base, size)
            writer.memcpy("htod", base, size)
            writer.free_allocation(allocation)
    return path


def test_an_address_that_comes_back_has_its_entries_again(tmp_path):
    bases = [BASE + 640, BASE + 9 * PAGE, BASE + 640]
    allocation_range = layout_of(churn(tmp_path / "t.bin", bases)).ranges
    assert allocation_range[0].first_entry == allocation_range[2].first_entry == 5
    with bt.TraceWriter(tmp_path / "u.bin", provenance()) as writer:
        numbers = [writer.add_allocation("a", BASE + at * PAGE, 2 * PAGE) for at in (0, 4, 8)]
        writer.memset(BASE, 1, 0)
        for number in numbers:
            writer.free_allocation(number)
        for at in (8, 5, 0):
            writer.add_allocation("b", BASE + at * PAGE, PAGE)
            writer.memset(BASE + at * PAGE, 1, 0)
    pages = [
        allocation_range.first_entry // LINES_PER_PAGE for allocation_range in layout_of(tmp_path / "u.bin").ranges
    ]
    assert pages == [0, 2, 4, 4, 3, 0]


def test_the_space_is_what_lives_at_once(tmp_path):
    """2,000 allocations follow one another: at the same addresses, at new ones, and with several pages."""
    for step, size in ((0, LINE), (PAGE, LINE), (PAGE, 3 * PAGE)):
        bases = [BASE + number * step for number in range(2_000)]
        layout = layout_of(churn(tmp_path / f"{step}-{size}.bin", bases, size))
        assert layout.n_entries <= 2 * max(LINES_PER_PAGE, size // LINE)


def test_many_short_lives_run(tmp_path):
    path = churn(tmp_path / "t.bin", [BASE + number % 32 * LINE for number in range(2_000)])
    with bt.open_trace(path) as trace:
        assert len(trace.allocations) == 2_000
    counters = buddysim.simulate(path, "p100-nvlink2", "buddy", size_distribution="all-zero").counters
    assert counters["trace.skipped_copies"] == 0


@given(
    steps=st.lists(st.tuples(st.integers(0, 30), st.integers(1, 5), st.booleans()), max_size=60),
)
def test_frames_are_shared_only_by_the_same_page(steps):
    frames, live = FrameAllocator(), []
    for page, pages, leaves in steps:
        if leaves and live:
            _, first, count = live.pop(page % len(live))
            frames.release(first, count)
        live.append((page, frames.allocate(page, pages), pages))
        owner = {}
        for page_, first, count in live:
            for offset in range(count):
                assert owner.setdefault(first + offset, page_ + offset) == page_ + offset
    assert frames.count <= sum(pages for _, pages, _ in steps)


def test_a_reallocated_address_has_the_sizes_of_the_new_allocation(tmp_path):
    with bt.TraceWriter(tmp_path / "t.bin", provenance()) as writer:
        numbers = []
        for _ in range(2):
            numbers.append(writer.add_allocation("a", BASE, 64 * LINE))
            accesses(writer, [(0, BASE + at * LINE, 1, 0) for at in range(64)])
            writer.free_allocation(numbers[-1])
        for point, size_class in ((0, 7), (1, 0)):
            snapshot = writer.add_snapshot(point, "")
            writer.add_size_map(snapshot, numbers[point], np.full(64, size_class, np.uint8))
    machine = Machine.load("p100-nvlink2").with_overrides({"l2.fill_on_memcpy": False})
    counters = buddysim.simulate(tmp_path / "t.bin", machine, "bandwidth-compression").counters
    assert counters["device.read_bytes"] == 64 * 32  # of the first one; the second one is zeros, and finds no line


def spans(path):
    kernels = buddysim.simulate(path, "p100-nvlink2", "ideal").per_kernel
    return {k["index"]: (k["launch_ps"], k["launch_ps"] + k["time_ps"]) for k in kernels}


def test_a_free_waits_for_what_runs_and_so_does_what_takes_its_address(tmp_path):
    for reused in (False, True):
        with bt.TraceWriter(tmp_path / f"{reused}.bin", provenance()) as writer:
            first = writer.add_allocation("a", BASE, 1 << 16)
            writer.begin_kernel("k0", (1, 1, 1), (32, 1, 1), stream=1)
            writer.add_blocks(*records([load_block(range(BASE, BASE + (1 << 16), LINE))]))
            writer.end_kernel()
            writer.free_allocation(first)
            base = BASE if reused else BASE + 2 * PAGE
            writer.add_allocation("b", base, 1 << 12)
            writer.begin_kernel("k1", (1, 1, 1), (32, 1, 1), stream=2)
            writer.add_blocks(*records([load_block([base])]))
            writer.end_kernel()
        reused_spans = spans(tmp_path / f"{reused}.bin")
        assert reused_spans[1][0] == (reused_spans[0][1] if reused else 0)


def test_a_launch_waits_for_no_kernel_launched_after_the_free_of_its_address(tmp_path):
    """Only kernel 0 was launched before the free; kernel 2 follows it on its stream, and kernel 1 still runs."""
    lines = range(BASE + 2 * PAGE, BASE + 2 * PAGE + (1 << 16), LINE)
    with bt.TraceWriter(tmp_path / "t.bin", provenance()) as writer:
        first = writer.add_allocation("a", BASE, 1 << 12)
        writer.add_allocation("c", BASE + 2 * PAGE, 1 << 16)
        for number, (stream, addresses) in enumerate([(1, [BASE]), (2, lines), (1, [BASE])]):
            if number == 1:
                writer.free_allocation(first)
            if number == 2:
                writer.add_allocation("b", BASE, 1 << 12)
            writer.begin_kernel(f"k{number}", (1, 1, 1), (32, 1, 1), stream=stream)
            writer.add_blocks(*records([load_block(addresses)]))
            writer.end_kernel()
    simulated = spans(tmp_path / "t.bin")
    assert simulated[2][0] == simulated[0][1] < simulated[1][1]
    with bt.open_trace(tmp_path / "t.bin") as trace:
        reference = replay(trace, Machine.load("p100-nvlink2"), "ideal", Targets(trace, {}))
    assert {kernel["index"]: kernel["launch_ps"] for kernel in reference["per_kernel"]} == {
        index: begin for index, (begin, _) in simulated.items()
    }
