"""Fault replay by SM: what an SM may not issue while a fault is pending, and when it replays it. Times by hand."""

from __future__ import annotations

import pytest

import buddysim
from tests.replay.bare import Launch, run_launches
from tests.replay.mechanisms.hand import NS, grid, load, machine, store, time_of

LATENCY, TRANSFER, LONG = 1_000, 256 + 198, 100_000  # ns: of a batch; a page of 4 KiB over the link; of a compute gap
KNOWN = 1 + 50  # ns: arrival at its slice of a load that issues at 1 ns
ABSENT, RESIDENT = 64, 32  # entries of pages 2 and 1
UM = "unified-memory"


def paged(replay="sm", **overrides):
    """Pages of 4 KiB without prefetch."""
    keys = {
        "page_size": "4 KiB",
        "va_block_size": "4 KiB",
        "fault_service": "batched",
        "serialize_transfers": True,
        "fault_batch_latency": "1 us",
    }
    um = {f"um__{key}": value for key, value in {**keys, "fault_replay_scope": replay}.items()}
    return machine(**{**um, "um__initial_location": "host", "um__capacity": "1 MiB", **overrides})


@pytest.mark.parametrize(("at", "replay", "at_once"), [(50, "sm", True), (51, "sm", False), (51, "warp", True)])
def test_an_sm_stops_when_a_fault_is_known(at, replay, at_once):
    """A warp loads an absent page at 1 ns; another one of a resident page would issue at `at`."""
    config = paged(replay, um__initial_location="device", um__capacity="8 KiB")
    other = [load(RESIDENT, critical_path_cycles=at), load(RESIDENT, critical_path_cycles=LONG)]
    alone = time_of(config, other, scheme=UM)
    both = time_of(config, [load(ABSENT)], other, scheme=UM)
    assert (both - alone < 10 * NS) == at_once
    if (
        not at_once
    ):  # it issues when the page has arrived: the batch begins with the fault, and another page is evicted first
        assert both - alone == (KNOWN + LATENCY + 256 + TRANSFER - at) * NS


@pytest.mark.parametrize(("at", "replay"), [(51, "sm"), (51, "warp")])
def test_other_sms_continue(at, replay):
    config = paged(replay, um__initial_location="device", um__capacity="8 KiB", sm__count=2)
    other = [load(RESIDENT, critical_path_cycles=at), load(RESIDENT, critical_path_cycles=LONG)]
    launches = [Launch([grid(*([ops] for ops in both))]) for both in ([[], other], [[load(ABSENT)], other])]
    without_ps, with_ps = (run_launches(config, [one], UM, regions=[(0, 4096, 0, 4)])[0]["now_ps"] for one in launches)
    assert with_ps - without_ps < 10 * NS


@pytest.mark.parametrize(
    ("at", "replay", "third"), [(2908, "sm", True), (2909, "sm", False), (2908, "warp", True), (2909, "warp", False)]
)
def test_unserviced_faults_repeat_when_the_batch_ends(at, replay, third):
    """Batches of one fault; warps of one SM need three pages, another SM needs a fourth one at `at`.

    The first batch ends at 51 + 1000 + 454 ns. The second one's page takes the link 1000 ns later. Faults beyond its
    limit occur again at its end, and before that, at its slice, the other SM's fault is the third.
    """
    replay_ns = KNOWN + LATENCY + TRANSFER + LATENCY
    assert replay_ns + TRANSFER == at + 50 + third
    needed_pages = [[load(page * 32)] for page in (2, 3, 4)]
    other = [load(5 * 32, critical_path_cycles=at), load(5 * 32), load(5 * 32, critical_path_cycles=LONG)]
    launch = Launch([grid(needed_pages, [other, [], []])], warps=3)
    single = paged(replay, sm__count=2, um__max_batch_faults=1)
    result = run_launches(single, [launch], UM, regions=[(0, 4096, 0, 4)])[0]
    end = result["now_ps"] // NS - LONG
    assert (replay_ns + TRANSFER + LATENCY < end < replay_ns + 2 * (TRANSFER + LATENCY)) == third
    assert result["scheme"]["um.page_faults"] == 4


def test_a_warp_without_faults_may_exit():
    """A third thread block, with a long chain, takes its resources long before the page of the first one arrives."""
    config = paged(um__initial_location="device", um__capacity="8 KiB", sm__blocks=2)
    blocks = [[load(ABSENT)]], [[load(RESIDENT)]], [[load(RESIDENT, critical_path_cycles=LONG)]]
    end = run_launches(config, [Launch([grid(*blocks)])], UM, regions=[(0, 4096, 0, 4)])[0]["now_ps"]
    assert end < (LONG + LATENCY) * NS


def test_sm_replay_needs_batched_service():
    with pytest.raises(buddysim.BuddysimError, match=r"um\.fault_replay_scope: sm: expected fault_service batched"):
        paged(um__fault_service="immediate")


@pytest.mark.parametrize(("limit", "batches"), [(3, 1), (2, 2), (0, 1)])
def test_accesses_beyond_the_limit_fault_after_the_replay(limit, batches):
    """One instruction needs three pages."""
    needed_pages = [load(64, 96, 128)]
    limited = paged(um__max_pending_faults_per_sm=limit)
    result = run_launches(limited, [Launch([grid([needed_pages])])], UM, regions=[(0, 4096, 0, 4)])[0]
    assert result["scheme"]["um.page_faults"] == 3
    assert (
        result["scheme"]["um.fault_handling_busy_ps"] == (batches + 1) * LATENCY * NS
    )  # the first one has a fault alone


@pytest.mark.parametrize(("limit", "faults"), [(8, 3), (0, 2), (2, 2)])
def test_every_access_faults_with_a_limit(limit, faults):
    """Of a page, then two lines in another one; an access beyond the limit finds its page resident at the replay."""
    needed_pages = [load(96, 64, 65)]
    limited = paged(um__max_pending_faults_per_sm=limit)
    result = run_launches(limited, [Launch([grid([needed_pages])])], UM, regions=[(0, 4096, 0, 4)])[0]
    assert result["scheme"]["um.page_faults"] == faults


@pytest.mark.parametrize(("at", "limit"), [(50, 2), (4, 1), (50, 1)])
def test_an_sm_at_its_limit_issues_nothing(at, limit):
    """One fault fills it as soon as its load has issued, before the fault is known."""
    config = paged(um__initial_location="device", um__capacity="8 KiB", um__max_pending_faults_per_sm=limit)
    other = [load(RESIDENT, critical_path_cycles=at), load(RESIDENT, critical_path_cycles=LONG)]
    alone = time_of(config, other, scheme=UM)
    both = time_of(config, [load(ABSENT)], other, scheme=UM)
    assert (both - alone < 10 * NS) == (limit == 2)


ENDS = KNOWN + LATENCY + 256 + TRANSFER  # of a batch; a page is evicted first


@pytest.mark.parametrize(("arrives", "limit", "at_once"), [(ENDS - 1, 1, False), (ENDS, 1, True), (ENDS - 1, 0, True)])
def test_an_access_to_a_migrating_page_counts_towards_the_limit(arrives, limit, at_once):
    """A warp of another SM requests it 1 ns before it can be used, or then; its neighbour issues 10 ns later."""
    config = paged(
        um__initial_location="device", um__capacity="8 KiB", sm__count=2, um__max_pending_faults_per_sm=limit
    )
    issues = arrives - KNOWN + 1
    neighbour = [load(RESIDENT, critical_path_cycles=issues + 10), load(RESIDENT, critical_path_cycles=LONG)]
    launches = [
        Launch([grid([[load(ABSENT)], []], [late, neighbour])], warps=2)
        for late in ([], [load(ABSENT + 1, critical_path_cycles=issues)])
    ]
    without_ps, with_ps = (run_launches(config, [one], UM, regions=[(0, 4096, 0, 4)])[0]["now_ps"] for one in launches)
    assert (with_ps - without_ps < 10 * NS) == at_once


def test_a_limit_needs_sm_replay():
    with pytest.raises(buddysim.BuddysimError, match=r"um\.max_pending_faults_per_sm: expected fault_replay_scope sm"):
        paged("warp", um__max_pending_faults_per_sm=8)


@pytest.mark.parametrize("replay", ["warp", "sm"])
def test_a_page_that_its_batch_evicted_comes_back_while_its_warp_computes(replay):
    """Stores to four pages, of which two fit; then 100 us of computation. The fault of one is replayed at the end of
    the second batch, and its page has come long before it is needed."""
    config = paged(replay, um__initial_location="host", um__capacity="8 KiB")
    late = [store(64, 96, 128, 160), store(97, critical_path_cycles=LONG)]
    result = run_launches(config, [Launch([grid([late])])], UM, regions=[(0, 4096, 0, 4)])[0]
    assert result["now_ps"] == (1 + LONG + 100) * NS
    assert result["scheme"]["um.page_faults"] == 5
