"""Replays of faults by SM: what an SM may not issue while it has a fault, and when it tries again. Times by hand."""

from __future__ import annotations

import pytest

import buddysim
from tests.replay.bare import Launch, run_launches
from tests.replay.mechanisms.hand import NS, grid, load, machine, time_of

LATENCY, TRANSFER, LONG = 1_000, 256 + 198, 100_000  # ns: of a batch; a page of 4 KiB over the link; of a chain
KNOWN = 1 + 50  # ns: when a load that issues at 1 ns comes to its slice
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
    given = {f"um__{key}": value for key, value in {**keys, "fault_replay_scope": replay}.items()}
    return machine(**{**given, "um__initial_location": "host", "um__capacity": "1 MiB", **overrides})


@pytest.mark.parametrize(("at", "replay", "at_once"), [(50, "sm", True), (51, "sm", False), (51, "warp", True)])
def test_an_sm_issues_nothing_from_when_a_fault_is_known(at, replay, at_once):
    """A warp loads an absent page at 1 ns; another one of a resident page would issue at `at`."""
    begun = paged(replay, um__initial_location="device", um__capacity="8 KiB")
    other = [load(RESIDENT, critical_path_cycles=at), load(RESIDENT, critical_path_cycles=LONG)]
    alone = time_of(begun, other, scheme=UM)
    both = time_of(begun, [load(ABSENT)], other, scheme=UM)
    assert (both - alone < 10 * NS) == at_once
    if not at_once:  # it issues when the page has come: the batch begins with the fault, and another page leaves first
        assert both - alone == (KNOWN + LATENCY + 256 + TRANSFER - at) * NS


@pytest.mark.parametrize(("at", "replay"), [(51, "sm"), (51, "warp")])
def test_other_sms_go_on(at, replay):
    begun = paged(replay, um__initial_location="device", um__capacity="8 KiB", sm__count=2)
    other = [load(RESIDENT, critical_path_cycles=at), load(RESIDENT, critical_path_cycles=LONG)]
    launches = [Launch([grid(*([ops] for ops in both))]) for both in ([[], other], [[load(ABSENT)], other])]
    without, found = (run_launches(begun, [one], UM, regions=[(0, 4096, 0, 4)])[0]["now_ps"] for one in launches)
    assert found - without < 10 * NS


@pytest.mark.parametrize(
    ("at", "replay", "third"), [(3108, "sm", True), (3109, "sm", False), (2654, "warp", True), (2655, "warp", False)]
)
def test_what_was_not_served_faults_again_when_the_batch_ends(at, replay, third):
    """Batches of one fault; warps of one SM want three pages, another SM wants a fourth one at `at`.

    The first batch ends at 51 + 1000 + 454 ns. The second one's warp looks again 1000 + 150 ns later, with the data
    that the L2 gave too early; then its page takes the link. What it has no room for faults again at its end, and
    before that the other SM's fault is the third; by warp, at that look.
    """
    look = KNOWN + LATENCY + TRANSFER + LATENCY + 150
    assert look + (TRANSFER if replay == "sm" else 0) == at + third
    wanted = [[load(page * 32)] for page in (2, 3, 4)]
    other = [load(5 * 32, critical_path_cycles=at), load(5 * 32), load(5 * 32, critical_path_cycles=LONG)]
    launch = Launch([grid(wanted, [other, [], []])], warps=3)
    single = paged(replay, sm__count=2, um__max_batch_faults=1)
    found = run_launches(single, [launch], UM, regions=[(0, 4096, 0, 4)])[0]
    end = found["now_ps"] // NS - LONG
    assert (look + TRANSFER + LATENCY < end < look + 2 * (TRANSFER + LATENCY)) == third
    assert found["scheme"]["um.page_faults"] == 4


def test_a_warp_without_faults_may_end():
    """A third thread block, with a long chain, takes its place long before the page of the first one comes."""
    begun = paged(um__initial_location="device", um__capacity="8 KiB", sm__blocks=2)
    blocks = [[load(ABSENT)]], [[load(RESIDENT)]], [[load(RESIDENT, critical_path_cycles=LONG)]]
    end = run_launches(begun, [Launch([grid(*blocks)])], UM, regions=[(0, 4096, 0, 4)])[0]["now_ps"]
    assert end < (LONG + LATENCY) * NS


def test_replays_by_sm_need_batches_by_block():
    with pytest.raises(buddysim.BuddysimError, match=r"um\.fault_replay_scope: sm: expected fault_service batched"):
        paged(um__fault_service="immediate")


@pytest.mark.parametrize(("most", "batches"), [(3, 1), (2, 2), (0, 1)])
def test_what_an_sm_has_no_room_for_faults_after_the_replay(most, batches):
    """One instruction wants three pages."""
    wanted = [load(64, 96, 128)]
    limited = paged(um__max_pending_faults_per_sm=most)
    found = run_launches(limited, [Launch([grid([wanted])])], UM, regions=[(0, 4096, 0, 4)])[0]
    assert found["scheme"]["um.page_faults"] == 3
    assert (
        found["scheme"]["um.fault_handling_busy_ps"] == (batches + 1) * LATENCY * NS
    )  # the first one has a fault alone


@pytest.mark.parametrize(("most", "faults"), [(8, 3), (0, 2), (2, 2)])
def test_with_a_limit_every_access_is_a_fault(most, faults):
    """Of a page, then two lines in another one; what had no room finds its page there when it looks again."""
    wanted = [load(96, 64, 65)]
    limited = paged(um__max_pending_faults_per_sm=most)
    found = run_launches(limited, [Launch([grid([wanted])])], UM, regions=[(0, 4096, 0, 4)])[0]
    assert found["scheme"]["um.page_faults"] == faults


@pytest.mark.parametrize(("at", "most"), [(50, 2), (4, 1), (50, 1)])
def test_a_full_sm_issues_nothing(at, most):
    """One fault fills it as soon as its load has issued, before anybody can know of the fault."""
    begun = paged(um__initial_location="device", um__capacity="8 KiB", um__max_pending_faults_per_sm=most)
    other = [load(RESIDENT, critical_path_cycles=at), load(RESIDENT, critical_path_cycles=LONG)]
    alone = time_of(begun, other, scheme=UM)
    both = time_of(begun, [load(ABSENT)], other, scheme=UM)
    assert (both - alone < 10 * NS) == (most == 2)


ENDS = KNOWN + LATENCY + 150 + 256 + TRANSFER  # of a batch, served when its load looks again; a page leaves first


@pytest.mark.parametrize(("arrives", "most", "at_once"), [(ENDS - 1, 1, False), (ENDS, 1, True), (ENDS - 1, 0, True)])
def test_a_page_on_its_way_is_in_flight_with_a_limit(arrives, most, at_once):
    """A warp of another SM asks for it 1 ns before it can be used, or then; its neighbour issues 10 ns later."""
    begun = paged(um__initial_location="device", um__capacity="8 KiB", sm__count=2, um__max_pending_faults_per_sm=most)
    issues = arrives - KNOWN + 1
    neighbour = [load(RESIDENT, critical_path_cycles=issues + 10), load(RESIDENT, critical_path_cycles=LONG)]
    launches = [
        Launch([grid([[load(ABSENT)], []], [late, neighbour])], warps=2)
        for late in ([], [load(ABSENT + 1, critical_path_cycles=issues)])
    ]
    without, found = (run_launches(begun, [one], UM, regions=[(0, 4096, 0, 4)])[0]["now_ps"] for one in launches)
    assert (found - without < 10 * NS) == at_once


def test_a_limit_needs_replays_by_sm():
    with pytest.raises(buddysim.BuddysimError, match=r"um\.max_pending_faults_per_sm: expected fault_replay_scope sm"):
        paged("warp", um__max_pending_faults_per_sm=8)
