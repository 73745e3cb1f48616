"""Lines reach L1 and L2 in the order of their arrival (docs/reference/replay-rules.md, Order of arrival)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import buddysim
from buddysim.base.errors import BuddysimError
from buddysim.replay.schemes import REGISTRY
from buddysim.trace import FLAG_BYPASS_L1, FLAG_TIMED
from tests.replay.bare import Launch, run_launches
from tests.replay.mechanisms.hand import NS, atomic, grid, load, machine, run, store
from tests.replay.random_cases import random_case, with_copies_in_time, write_case
from tests.replay.test_reference_machine import differences_in

M = machine()
PAST_L1 = FLAG_BYPASS_L1 | FLAG_TIMED


def run_blocks(on: Any, *blocks: Any, exact_order: bool = True) -> dict[str, Any]:
    return run_launches(on, [Launch([grid(*blocks)], warps=1)], exact_order=exact_order)[0]


@pytest.mark.parametrize(("exact_order", "hits"), [(False, 0), (True, 1)])
def test_a_burst_that_has_not_arrived_evicts_nothing(exact_order, hits):
    """The first SM's 32 lines leave 32 ns apart from 300 on; the second SM loads line 100 again at 340.

    The burst fills the set of 32 ways, but its last line arrives at the slice at 300 + 31 * 32 + 50.
    """
    slow = machine(sm__count=2, crossbar__request_bandwidth="1 GB/s", l2__bandwidth="128 GB/s")
    burst = [load(*range(32), critical_path_cycles=300, flags=PAST_L1)]
    again = [load(100, flags=PAST_L1), load(100, critical_path_cycles=139, flags=PAST_L1), store(200)]
    assert run_blocks(slow, [burst], [again], exact_order=exact_order)["l2_read_hits"] == hits


def test_an_mshr_of_the_l2_goes_to_the_request_that_arrives_first():
    """The first SM's load waits for its port until 900; the second SM's has the only MSHR from 90 to 240."""
    slow = machine(sm__count=2, l2__mshrs=1, crossbar__request_bandwidth="1 GB/s")
    first = [store(*[0] * 30), load(1)]
    second = [load(2, critical_path_cycles=40), store(3, critical_path_cycles=2000)]
    count = run_blocks(slow, [first], [second])
    assert count["now_ps"] == (40 + 200 + 1999 + 100) * NS
    assert run_blocks(slow, [first], [second], exact_order=False)["now_ps"] > count["now_ps"]


def test_a_miss_takes_the_mshr_that_is_free_first():
    """Of three, that of the L2's hit on line 5, at 302 + 100; a ring has those of lines 0 and 1 next, free at 500."""
    ops = [store(5), load(0, 1, 5, 6, critical_path_cycles=299)]
    issue, arrival = (run(machine(l1__mshrs=3), ops, exact_order=one)["now_ps"] for one in (False, True))
    assert (issue, arrival) == ((500 + 200) * NS, (402 + 200) * NS)


@pytest.mark.parametrize(
    ("keys", "ops"),
    [
        ({"l1__mshrs": 1}, [load(0, 1)]),
        ({"l1__mshrs": 2}, [load(0, 1, 2, 0)]),
        ({"l1__mshrs": 1}, [load(0, 0)]),
        ({"l1__mshrs": 1}, [store(0, 1), load(0)]),
        ({"l1__max_mshr_merges": 1}, [load(0, 0, 0, 1)]),
        (
            {},
            [
                load((0, 1), use_distance=0),
                load((0, 2), critical_path_cycles=100, use_distance=0),
                load((0, 1)),
                store(1),
            ],
        ),
        ({}, [atomic(0, 1), store(*[0] * 40), load(0, use_distance=3)]),
        ({"l1__bank_conflicts": "sector"}, [load((0, 3), (1, 12), (2, 1)), store(5)]),
        ({"l1__bank_conflicts": "tag_and_data"}, [load(0, 4, 1, 8), store(5, 9, 2)]),
        ({"sm__exit_waits_for_stores": False}, [store(0, 1, 2), load(3, use_distance=0)]),
    ],
)
def test_one_warp_takes_the_same_time_in_both_orders(keys, ops):
    """There lines arrive as they are issued: MSHRs, slots of the store buffer, merges, banks and queues wait alike."""
    on = machine(**keys)
    issue, arrival = (run(on, ops, exact_order=exact_order) for exact_order in (False, True))
    differing = {key: (issue[key], arrival[key]) for key in issue if issue[key] != arrival[key]}
    assert not differing
    assert arrival["now_ps"] > 100 * NS


@pytest.mark.parametrize(("lines", "held_ns"), [(32, 0), (33, 1), (40, 8)])
def test_lines_beyond_a_queue_of_32_hold_their_warp(lines, held_ns):
    count = run(M, [store(*[0] * lines), store(1, critical_path_cycles=60)], exact_order=True)
    assert count["now_ps"] == (1 + held_ns + 60 + 100) * NS


def test_a_warp_with_34_loads_in_flight_waits_for_the_first():
    """Nothing uses them for long; the 35th issues at 201 and arrives at 401. Without the limit it would issue at 35."""
    ops = [load(n, use_distance=60, use_cycles=4000) for n in range(35)]
    assert run(machine(l2__mshrs=64), ops, exact_order=True)["now_ps"] == 401 * NS


def test_a_kernel_ends_with_its_last_store():
    on = machine(sm__exit_waits_for_stores=False, sm__count=2)
    count = run_blocks(on, [[store(0)]], [[store(1, critical_path_cycles=50)]])
    assert count["now_ps"] == (50 + 100) * NS


def test_page_faults_are_refused(tmp_path):
    """A warp replays them, in an order of its own."""
    case = random_case(1, "unified-memory", "simple")
    with pytest.raises(BuddysimError, match=r"^exact_order: unified-memory has page faults"):
        buddysim.simulate(write_case(case, tmp_path / "t.bin"), case.make_machine(), "unified-memory", exact_order=True)


def check_reference(seeds: range, scheme: str, model: str, folder: Path) -> None:
    for seed in seeds:
        case = random_case(seed, scheme, model)
        case = with_copies_in_time(case) if seed % 2 else case
        different = differences_in(replace(case, options={**case.options, "exact_order": True}), folder)
        assert not different, f"random_case({seed}, {scheme!r}, {model!r})"


CASES = [(scheme, model) for scheme in REGISTRY.names() if scheme != "unified-memory" for model in ("simple", "banked")]


@pytest.mark.parametrize(("scheme", "model"), CASES)
def test_engine_equals_reference_model(scheme, model, tmp_path):
    check_reference(range(2), scheme, model, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "model"), CASES)
def test_engine_equals_reference_model_on_more(scheme, model, tmp_path):
    check_reference(range(2, 22), scheme, model, tmp_path)
