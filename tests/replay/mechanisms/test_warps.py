"""A warp's clock, its waits, and issue slots (docs/explanation/replay-model.md, Time)."""

from fractions import Fraction

import pytest

from buddysim.trace import FLAG_NO_RETURN, FLAG_TIMED
from tests.replay.bare import Launch, run_launches
from tests.replay.mechanisms.hand import NS, atomic, grid, load, machine, run, store, time_of
from tests.trace.builders import records

M = machine()


@pytest.mark.parametrize(
    ("fields", "chain_ns"),
    [
        ({"critical_path_cycles": 7, "critical_path_hops": 3}, 7 + 3 * 4),
        ({"critical_path_cycles": 7, "gap_instructions": 29}, 30),  # no faster than an instruction per issue interval
        ({"flags": 0, "gap_instructions": 4}, 5 * 6),  # where the trace knows no chains
    ],
)
def test_a_compute_gap_takes_its_critical_path(fields, chain_ns):
    assert time_of(M, [store(0), store(1, **fields)]) == (1 + chain_ns + 100) * NS


def test_instructions_of_a_warp_follow_each_other_at_the_issue_interval():
    slow = machine(sm__issue_interval="3 ns")
    assert time_of(slow, [store(0), store(1), store(2)]) == (3 * 3 + 100) * NS


def test_compute_gaps_scale():
    ops = [store(0, gap_instructions=4, critical_path_cycles=10), store(1, gap_instructions=4, critical_path_cycles=10)]
    ends = [run_launches(M, [Launch([grid([ops])])], compute_gap_scale=Fraction(n, 2))[2] for n in (1, 2, 4)]
    assert ends == [[(10 + 100) * NS], [(20 + 100) * NS], [(40 + 100) * NS]]


def test_a_load_blocks_at_its_first_use():
    """The load issues at 1 and arrives at 201; its use is at 51 on the clock."""
    early = load(0, use_distance=50, use_cycles=50)
    assert (
        time_of(M, [early, store(1, critical_path_cycles=49)]) == 201 * NS
    )  # at 50: the store issues, and is there at 150
    assert (
        time_of(M, [early, store(1, critical_path_cycles=50)]) == (201 + 100) * NS
    )  # at 51: not before the load is there
    assert time_of(M, [early, store(1, critical_path_cycles=90)]) == (201 + 40 + 100) * NS  # 40 after the use


@pytest.mark.parametrize("fields", [{"use_distance": 0}, {"flags": FLAG_TIMED | FLAG_NO_RETURN}])
def test_an_unused_result_does_not_block(fields):
    assert time_of(M, [atomic(0, **fields), store(1, critical_path_cycles=150)]) == (1 + 150 + 100) * NS


def test_stores_do_not_block():
    assert time_of(M, [store(0), store(1), store(2)]) == (3 + 100) * NS


def test_a_warp_ends_with_its_last_load_and_its_last_acknowledgement():
    assert time_of(M, [load(0, use_distance=0)]) == 201 * NS
    assert time_of(M, [store(0)]) == 101 * NS
    assert time_of(M, [store(0)], tail={"tail_gap_instructions": 150, "tail_critical_path_cycles": 150}) == 151 * NS


def test_34_loads_may_be_pending_and_no_35th():
    """All arrive at 201, before the first is used. The 35th issues then, not at 35."""
    loads = [load(0, use_distance=100, use_cycles=100)] * 35
    assert (
        time_of(M, [*loads[:34], store(1, critical_path_cycles=65)]) == 201 * NS
    )  # the store issues at 99, before any use
    assert time_of(M, [*loads, store(1, critical_path_cycles=65)]) == (201 + 65 + 100) * NS


@pytest.mark.parametrize(("count", "rounds"), [(34, 1), (35, 2), (60, 2), (68, 2), (69, 3)])
def test_loads_that_are_used_late_are_limited_too(count, rounds):
    """Their results are used 1,000 cycles later: the limit is one of loads in flight, whenever they are used."""
    loads = [load(number, use_distance=1000, use_cycles=1000) for number in range(count)]
    wide = machine(dram__pseudo_channel_bandwidth="200 GB/s", l1__mshrs=128, l2__mshrs=128)
    assert rounds * 200 * NS <= time_of(wide, loads) < (rounds * 200 + 150) * NS


def test_an_operation_without_a_result_needs_no_entry():
    loads = [load(0, use_distance=100, use_cycles=100)] * 34
    assert time_of(M, [*loads, store(1), store(2)]) == time_of(M, [*loads, store(1)]) == 201 * NS


def test_a_scheduler_issues_one_instruction_per_cycle():
    wide = machine(l1__lines_per_cycle=4, crossbar__request_bandwidth="128 GB/s")
    assert time_of(wide, [store(0)], [store(1)], [store(2)]) == (3 + 100) * NS


def test_instructions_between_take_issue_slots():
    """Both warps are ready at 10; the second one's ten slots follow the first one's."""
    ten = {"gap_instructions": 9, "critical_path_cycles": 10}
    assert time_of(M, [store(0, **ten)], [store(1, **ten)]) == (19 + 100) * NS


def test_instructions_after_the_last_operation_take_issue_slots():
    """Each warp's store issues in the first two slots, and is there at 102; then 200 slots each."""
    ends = [
        time_of(
            M, *[[store(i)] for i in range(n)], tail={"tail_gap_instructions": 200, "tail_critical_path_cycles": 200}
        )
        for n in (1, 2)
    ]
    assert ends == [201 * NS, (201 + 200) * NS]


def test_a_busy_unit_delays_the_scheduler_but_not_its_own_operation():
    assert time_of(M, [store(0, unit_busy_slots=20)]) == 101 * NS
    count = run(M, [store(0, unit_busy_slots=20)], [store(1)])
    assert count["now_ps"] == (1 + 20 + 100) * NS
    assert count["issue_busy_ps"] == 22 * NS


@pytest.mark.parametrize(("blocking", "time_ns"), [(False, 202), (True, 202 + 100)])
def test_blocking_atomics_block(blocking, time_ns):
    unused = atomic(0, use_distance=0)
    assert time_of(machine(sm__blocking_atomics=blocking), [unused, store(1)]) == time_ns * NS
    assert time_of(M, [atomic(0), store(1)]) == (202 + 100) * NS


@pytest.mark.parametrize(("stalls", "second_ns"), [(False, 1 + 20), (True, 1 + 20 + 20)])
def test_a_warp_stalled_on_a_unit_waits_for_its_own_instructions(stalls, second_ns):
    """Each warp keeps the unit busy for 20 slots beyond its own: with stalls the second is done after 42 in all."""
    both = machine(sm__stall_on_busy_unit=stalls)
    assert time_of(both, [store(0, unit_busy_slots=20)]) == 101 * NS
    busy = store(1, unit_busy_slots=20)
    assert time_of(both, [store(0, unit_busy_slots=20)], [busy]) == (second_ns + 100) * NS
    assert time_of(both, [store(0, unit_busy_slots=20)], [store(1, critical_path_cycles=21)]) == (21 + 100) * NS


@pytest.mark.parametrize("unit_busy_slots", [20, 65_534, 65_535, 65_536, 70_000])
@pytest.mark.parametrize("stalls", [False, True])
def test_a_tail_occupies_execution_units(stalls, unit_busy_slots):
    """Two warps without operations, of ten instructions each: the second one's last slot comes after the first one's
    unit slots and nine of its own, with stalls after its own unit slots too; no warp waits for its own otherwise."""
    both = machine(sm__stall_on_busy_unit=stalls)
    tail = {"tail_gap_instructions": 10, "tail_critical_path_cycles": 10, "tail_unit_busy_slots": unit_busy_slots}
    assert time_of(both, [], tail=tail) == 10 * NS
    count = run(both, [], [], tail=tail)
    assert count["now_ps"] == (10 + unit_busy_slots + 9 + stalls * unit_busy_slots) * NS
    assert count["issue_busy_ps"] == 2 * (10 + unit_busy_slots) * NS


@pytest.mark.parametrize(("ready_ns", "issue_ns"), [(5, 23), (22, 23), (23, 23), (24, 24)])
def test_units_of_a_tail_delay_operations_of_other_warps(ready_ns, issue_ns):
    """The first warp ends at 3 and keeps a unit for 20 slots more: no other operation issues before 23."""
    tail = {"tail_gap_instructions": 3, "tail_critical_path_cycles": 3, "tail_unit_busy_slots": 20}
    chunk = records([(0, [({"warp": 0, **tail}, []), ({"warp": 1}, [store(0, critical_path_cycles=ready_ns)])])])
    assert run_launches(M, [Launch([chunk], warps=2)])[2] == [(issue_ns + 100) * NS]
