"""Batched fault service of Unified Memory: pages of a batch, resumption of its warps, and repeated faults."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import buddysim
import buddysim.trace as bt
from buddysim.replay.parameters import engine_numbers
from tests.replay.bare import Launch, link_read_ps, run_launches, run_warps, tiny_machine
from tests.replay.events import BASE, load_block, provenance
from tests.trace.builders import records

PAGE = 512  # entries of 64 KiB
BYTES = 64 * 1024
REGIONS = [(0, 16 * PAGE, 0, 4)]
HOST = {"um__initial_location": "host", "um__serialize_transfers": True, "um__capacity": "1 MiB"}


def machine(service="batched", **overrides):
    """Return a machine without prefetching on which all sixteen pages fit, unless overridden."""
    return tiny_machine(
        **{
            "um__va_block_size": "64 KiB",
            "dram__capacity": "1 GiB",
            "sm__count": 1,
            "um__fault_service": service,
            **HOST,
            **overrides,
        }
    )


def load(*entries):
    """Return one load instruction of these lines."""
    return 0, [(entry, 1, 0) for entry in entries]


def run(warps, service="batched", **overrides):
    """Return the counters of warps of these instructions, one per thread block."""
    return run_warps(machine(service, **overrides), warps, "unified-memory", regions=REGIONS)[0]


def pages(count):
    """Return the faults, the migrated pages and the evicted pages."""
    scheme = count["scheme"]
    moved = (scheme[f"link.migration_{way}_bytes"] // BYTES for way in ("in", "out"))
    return scheme["um.page_faults"], *moved


def batches(count, m):
    return count["scheme"]["um.fault_handling_busy_ps"] // m.ps(m.um.fault_batch_latency)


@pytest.mark.parametrize("latency", ["20 us", "30 us"])
def test_a_lone_fault_takes_its_latency_and_the_page(latency):
    resident = run([[load(0)]], um__initial_location="device")["now_ps"]
    m = machine(um__fault_batch_latency=latency)
    numbers = engine_numbers(m, 1)
    transfer = BYTES * 10**12 // numbers["link_bytes_per_s"] + link_read_ps(m)
    faulted = run([[load(0)]], um__fault_batch_latency=latency)["now_ps"]
    assert faulted == pytest.approx(resident + m.ps(m.um.fault_batch_latency) + transfer, abs=1)


@pytest.mark.parametrize("service", ["immediate", "batched"])
def test_warps_resume_when_the_batch_ends(service):
    """Pages 1 and 2 are of the second batch. A load behind page 1, which comes first, ends the run only by block."""
    first, last = [load(PAGE)], [load(2 * PAGE)]
    without, longer = (run([[load(0)], ops, last], service)["now_ps"] for ops in (first, [*first, load(7)]))
    one_load = (
        run([[load(0), load(7)]], um__initial_location="device")["now_ps"]
        - run([[load(0)]], um__initial_location="device")["now_ps"]
    )
    assert longer - without == pytest.approx(one_load if service == "batched" else 0, abs=2_000)
    assert one_load > 200_000


@pytest.mark.parametrize(("service", "expected"), [("immediate", (5, 5, 4)), ("batched", (7, 4, 3))])
def test_a_page_migrates_once_per_batch_and_an_evicted_one_faults_again(service, expected):
    """One page fits. After page 0, warps need 1, 2, 1, 2; batched service migrates 1, 2, then 1 for its two warps."""
    needed_pages = [1, 2, 1, 2]
    warps = [[load(0)], *([load(page * PAGE + 32 * n)] for n, page in enumerate(needed_pages))]
    assert pages(run(warps, service, um__capacity="64 KiB")) == expected


@pytest.mark.parametrize(("faulted", "added"), [((4,), 0), ((4, 5), 0), ((4, 6), 0), ((4, 5, 6), 1), ((4, 6, 7), 1)])
def test_prefetch_tree_counts_pending_faults_of_the_batch(faulted, added):
    """Blocks of four pages: three that fault in one batch bring the fourth; what the tree adds does not add more."""
    warps = [[load(0)], *([load(page * PAGE)] for page in faulted)]
    count = run(warps, um__va_block_size="256 KiB", um__eviction_granularity="256 KiB")
    assert count["scheme"]["um.pages_prefetched"] == added


def test_va_blocks_are_serviced_in_address_order():
    """One page fits: 3 faults twice, then 1; 3 stays nevertheless, and only the warp that needs 1 faults again."""
    entries = [3 * PAGE, 3 * PAGE + 32, PAGE]
    counts = pages(run([[load(0)], *([load(entry)] for entry in entries)], um__capacity="64 KiB"))
    assert counts == (1 + 3 + 1, 4, 3)


@pytest.mark.parametrize(("most", "expected"), [(1, 4), (2, 3), (3, 2)])
def test_a_batch_is_full_by_fault_blocks_of_4_kib(most, expected):
    """After the first batch: two fault blocks of page 1, and page 2."""
    warps = [[load(0)], [load(PAGE)], [load(PAGE + 32)], [load(2 * PAGE)]]
    limits = {"um__max_batch_faults": most}
    n_batches = batches(run(warps, **limits), machine(**limits))
    assert n_batches == (expected if most > 1 else 3)  # full with page 1, so that its other fault block needs no more


@pytest.mark.parametrize(("lines", "faults"), [((0, 31), 1), ((0, 32), 2), ((31, 32, 33), 2)])
def test_a_warp_faults_once_per_fault_block(lines, faults):
    count = run([[load(0)], [load(*(PAGE + line for line in lines))]])
    assert pages(count) == (1 + faults, 2, 0)


def test_untouched_pages_are_not_transferred():
    """One page fits: 0 and 1 are untouched, then 0 returns with its data."""
    ops = [[load(0), load(PAGE), load(1)]]
    count = run(ops, um__capacity="64 KiB", um__zero_fill_untouched=True)
    assert pages(count)[1:] == (1, 2)
    saved = run(ops, um__capacity="64 KiB")["now_ps"] - count["now_ps"]
    numbers = engine_numbers(machine(), 1)
    one = BYTES * 10**12 // numbers["link_bytes_per_s"] + link_read_ps(machine())
    assert saved == pytest.approx(2 * one, abs=4)


@pytest.mark.parametrize("service", ["immediate", "batched"])
def test_a_copy_writes_pages(service, tmp_path):
    """Page 1 is written from the host, page 6 is not."""
    with bt.TraceWriter(tmp_path / "t.bin", provenance()) as writer:
        writer.add_allocation("data", BASE, 16 * BYTES)
        writer.memcpy("htod", BASE + BYTES, 8 * 128)
        writer.begin_kernel("reads", (1, 1, 1), (32, 1, 1))
        writer.add_blocks(*records([load_block([BASE + page * BYTES for page in (1, 6)])]))
        writer.end_kernel()
    keys = {
        "um.fault_service": service,
        "um.zero_fill_untouched": True,
        "um.initial_location": "host",
        "um.va_block_size": "64 KiB",
    }
    counters = buddysim.simulate(
        tmp_path / "t.bin", buddysim.Machine.load("p100-nvlink2").with_overrides(keys), "unified-memory"
    ).counters
    assert (counters["link.migration_in_bytes"], counters["um.page_faults"]) == (BYTES, 2)


def test_eviction_blocks_contain_a_va_block():
    with pytest.raises(buddysim.BuddysimError, match="eviction_granularity"):
        machine(um__va_block_size="256 KiB")


@given(
    warps=st.lists(
        st.lists(st.lists(st.integers(0, 16 * PAGE - 1), min_size=1, max_size=4), min_size=1, max_size=6),
        min_size=1,
        max_size=8,
    ),
    capacity_blocks=st.integers(1, 8),
    pages_per_block=st.sampled_from([1, 4]),
    blocks=st.sampled_from([1, 2, 4]),
    most=st.sampled_from([1, 3, 256]),
)
@settings(deadline=None, max_examples=60)
def test_migrated_pages_are_evicted_or_resident(warps, capacity_blocks, pages_per_block, blocks, most):
    """Migrated pages are evicted, or resident and fit; no warp waits for ever."""
    keys = {
        "um__capacity": f"{64 * pages_per_block * capacity_blocks} KiB",
        "um__eviction_granularity": f"{64 * pages_per_block if pages_per_block > 1 else 0} KiB",
        "um__va_block_size": f"{64 * min(blocks, pages_per_block)} KiB", "um__max_batch_faults": most,
    }  # fmt: skip
    count = run([[load(*dict.fromkeys(lines)) for lines in ops] for ops in warps], **keys)
    scheme = count["scheme"]
    migrated = scheme["link.migration_in_bytes"] // BYTES
    evicted = scheme["link.migration_out_bytes"] // BYTES
    accessed = {entry // PAGE for ops in warps for lines in ops for entry in lines}
    assert evicted == scheme["um.pages_evicted"]
    assert 1 <= migrated - evicted <= capacity_blocks * pages_per_block
    assert migrated >= len(accessed)
    assert migrated <= scheme["um.page_faults"] + scheme["um.pages_prefetched"]


@pytest.mark.parametrize("service", ["immediate", "batched"])
def test_pages_come_while_the_warp_that_needs_them_computes(service):
    """A warp stores to 200 pages, then computes for 1.54 ms. Nothing else happens meanwhile; all pages have come."""
    compute = 2_000_000
    keys = {"um__capacity": "16 MiB", "um__serialize_transfers": False}
    ops = np.zeros(1, bt.OP_DTYPE)
    ops["kind"], ops["n_lines"], ops["flags"], ops["critical_path_cycles"] = bt.OP_STORE, 200, bt.FLAG_TIMED, 1
    warp, block = np.zeros(1, bt.WARP_DTYPE), np.zeros(1, bt.BLOCK_DTYPE)
    warp["n_ops"], warp["tail_critical_path_cycles"], block["n_warps"] = 1, compute, 1
    lines = np.array([PAGE * page << 8 | 0x11 for page in range(200)], np.uint64)
    launch = Launch([(block, warp, ops, lines)])
    regions = [(0, 200 * PAGE, 0, 4)]
    count, _, _ = run_launches(machine(service, **keys), [launch], "unified-memory", regions=regions)
    assert pages(count) == (200, 200, 0)
    computed = compute * engine_numbers(machine(), 1)["cycle_ps"]
    assert computed <= count["now_ps"] <= computed + 150_000
