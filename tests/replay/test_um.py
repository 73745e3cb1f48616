"""Unified Memory: what a fault costs, what is prefetched, what is evicted."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.replay.engine.kinds import Placement, Traffic
from buddysim.replay.parameters import engine_numbers
from buddysim.replay.twins.um import NaivePages
from tests.replay.bare import run_warps, tiny_machine

PAGE = 512  # entries of 64 KiB
PAGES = 8
REGIONS = [(0, PAGES * PAGE, 0, 4)]


def machine(**overrides):
    """Half of the eight pages fit; unless overridden, nothing is prefetched."""
    return tiny_machine(**{"um__prefetch": "64 KiB", "dram__capacity": "1 GiB", **overrides})


def loads(pages):
    """Loads that depend on each other, each of a line that no cache holds."""
    return [(0, [(page * PAGE + number, 1, 0)]) for number, page in enumerate(pages)]


def counted(pages, *, regions=REGIONS, **overrides):
    """Faults, prefetched and evicted pages of one warp, and all counters."""
    count, _ = run_warps(machine(**overrides), [loads(pages)], "um", regions=regions)
    pages_counted = tuple(
        count["scheme"][f"um.{name}"] for name in ("page_faults", "pages_prefetched", "pages_evicted")
    )
    return pages_counted, count


def page_ps(m):
    """Time of one page on the link, and the rest of a read over it (ps)."""
    numbers = engine_numbers(m, Fraction(1))
    return int(64 * 1024 * 10**12 / numbers["link_bytes_per_s"]), numbers["link_read_ps"]


@pytest.mark.parametrize("latency", ["20 us", "30 us"])
@pytest.mark.parametrize("bandwidth", ["75 GB/s", "150 GB/s"])
def test_a_fault_costs_its_latency_and_the_page_and_then_the_access(latency, bandwidth):
    settings_ = {"um__fault_latency": latency, "link__bandwidth": bandwidth}
    m = machine(**settings_)
    counts, resident = counted([0], **settings_)
    assert counts == (0, 0, 0)
    assert resident["now_ps"] == 769 + m.ps(m.dram.load_to_use)
    counts, faulted = counted([5], **settings_)
    assert counts == (1, 0, 1)
    transfer, around = page_ps(m)
    expected = resident["now_ps"] + m.ps(m.um.fault_latency) + around + transfer
    assert faulted["now_ps"] == pytest.approx(expected, abs=1)
    assert faulted["scheme"]["link.migration_in_bytes"] == faulted["scheme"]["link.migration_out_bytes"] == 64 * 1024
    assert faulted["device"][Traffic.DEMAND] == 1


def test_resident_pages_cost_what_ideal_costs():
    warp = [loads([0, 1, 2, 3] * 20)]
    times = [run_warps(machine(), warp, scheme, regions=REGIONS)[0]["now_ps"] for scheme in ("um", "ideal")]
    assert times[0] == times[1]


def test_the_page_missed_least_recently_is_evicted():
    assert counted([0, 4, 0])[0] == (1, 0, 1)  # 1 was evicted, as 0 had just been missed
    assert counted([4, 0])[0] == (2, 0, 2)  # 0 was evicted
    assert counted([4, 5, 6, 7])[0] == (4, 0, 4)
    assert counted([4, 5, 6, 7] * 3)[0] == (4, 0, 4)
    assert counted([*range(8)] * 3)[0] == (20, 0, 20)  # a cycle longer than what fits: all but the first four miss


def test_more_than_half_of_a_subtree_prefetches_the_rest():
    """Blocks of four pages: the third fault in one prefetches the fourth page."""
    assert counted([4, 5], um__prefetch="256 KiB")[0] == (2, 0, 2)
    assert counted([4, 5, 6, 7], um__prefetch="256 KiB")[0] == (3, 1, 4)
    assert counted([4, 6, 5], um__prefetch="256 KiB")[0] == (3, 1, 4)


def test_pages_without_an_allocation_never_migrate():
    """Pages 0, 1 and 7 hold nothing: not resident at first, not prefetched, no room taken."""
    regions = [(2 * PAGE, 7 * PAGE, 0, 4)]
    settings_ = {"um__prefetch": "256 KiB", "um__oversubscription": 0.5}
    # 7 pages of the address space count here, half of which fit: 2, 3 and 4 are resident.
    counts, count = counted([2, 3, 4, 5, 6], regions=regions, **settings_)
    assert counts == (2, 0, 2)  # with 4 to 6 resident, the fourth of the block would be prefetched, but is empty
    assert count["scheme"]["link.migration_in_bytes"] == 2 * 64 * 1024


def test_faults_that_wait_are_handled_together():
    """The first begins a batch at once; those that come meanwhile are the next, or one each where batches hold one."""
    warps = [loads([page]) for page in (4, 5, 6)]
    for batch, batches in ((256, 2), (1, 3)):
        m = machine(um__fault_batch=batch)
        count, _ = run_warps(m, warps, "um", regions=REGIONS)
        transfer, _ = page_ps(m)
        least = batches * m.ps(m.um.fault_latency) + transfer
        assert count["scheme"]["um.page_faults"] == 3
        assert least <= count["now_ps"] <= least + 2 * transfer + 2_000_000


@given(
    pages=st.lists(st.integers(0, 31), max_size=120),
    share=st.sampled_from([0.1, 0.5, 0.75, 0.9]),
    block=st.sampled_from([1, 2, 8, 32]),
    hole=st.tuples(st.integers(1, 30), st.integers(1, 30)).map(sorted),
)
@settings(deadline=None, max_examples=60)
def test_counts_equal_the_twins(pages, share, block, hole):
    """Random pages; those in the hole belong to the host and never migrate."""
    first, end = hole[0], hole[1] + 1
    regions = [(0, first * PAGE, 0, 4), (first * PAGE, end * PAGE, Placement.HOST, 4), (end * PAGE, 32 * PAGE, 0, 4)]
    settings_ = {"um__prefetch": f"{64 * block} KiB", "um__oversubscription": share}
    counts, count = counted(pages, regions=regions, **settings_)
    managed = [page for page in range(32) if not first <= page < end]
    capacity = max(1, int(32 * PAGE * (1 - Fraction(share))) // PAGE)
    twin = NaivePages(managed, capacity, block)
    for page in pages:
        if page in managed:
            twin.access(page)
    assert counts == (twin.faults, twin.prefetched, twin.evicted)
    assert count["scheme"]["link.migration_in_bytes"] == 64 * 1024 * (twin.faults + twin.prefetched)
    assert count["scheme"]["link.migration_out_bytes"] == 64 * 1024 * twin.evicted
    assert count["link_read"][Traffic.DEMAND] == 32 * sum(page not in managed for page in pages)
