"""The L1 and what blocks it (docs/model.md, SM and L1)."""

import pytest

from buddysim.trace import FLAG_BYPASS_L1, FLAG_TIMED
from tests.replay.bare import Launch, run_launches
from tests.replay.mechanisms.hand import NS, atomic, grid, load, machine, run, store, time_of

M = machine()


def test_latencies_of_l1_l2_and_device_memory():
    assert time_of(M, [load(0)]) == (1 + 200) * NS
    assert time_of(M, [store(0), load(0, chain_cycles=300)]) == (301 + 100) * NS  # a store allocates in the L2 alone
    assert time_of(M, [load(0), load(0)]) == (201 + 20) * NS


@pytest.mark.parametrize(("lines_per_cycle", "third_ps"), [(1, 3 * NS), (2, 2 * NS), (4, 1500)])
def test_lines_enter_in_order(lines_per_cycle, third_ps):
    wide = machine(l1__lines_per_cycle=lines_per_cycle, crossbar__request_bandwidth="128 GB/s")
    assert time_of(wide, [store(0, 1, 2)]) == third_ps + 100 * NS


@pytest.mark.parametrize(("lines", "held_ns"), [(32, 0), (33, 1), (40, 8)])
def test_lines_beyond_a_queue_of_32_hold_their_warp(lines, held_ns):
    """The instruction has issued when all but 32 of its lines are in."""
    assert time_of(M, [store(*[0] * lines), store(1, chain_cycles=60)]) == (1 + held_ns + 60 + 100) * NS


def test_a_merged_access_waits_for_the_sector_that_is_on_its_way():
    """The second warp's load of the same sector at 2 arrives with the first one's at 201, not as a hit at 22."""
    count = run(M, [load(0)], [load(0), store(1)])
    assert count["now_ps"] == (201 + 100) * NS
    assert (count["l1_merged"], count["l1_hits"], count["demanded"]) == (1, 0, 1)


@pytest.mark.parametrize(("asked_ns", "used_ns"), [(181, 201), (182, 202), (200, 220), (201, 221)])
def test_a_hit_takes_its_latency_and_a_merged_access_at_least_that(asked_ns, used_ns):
    """The sector is there at 201."""
    assert time_of(M, [load(0, use_distance=0)], [load(0, chain_cycles=asked_ns), store(1)]) == (used_ns + 100) * NS


def test_a_line_has_one_arrival_time():
    """Sector 1 is asked for at 101 and arrives at 301; sector 0, on its way since 1, waits for it too, if asked for at
    102."""
    ops = [load((0, 1), use_distance=0), load((0, 2), chain_cycles=100, use_distance=0), load((0, 1)), store(1)]
    assert time_of(M, ops) == (301 + 100) * NS


def test_where_no_mshr_is_free_the_access_waits():
    assert time_of(machine(l1__mshrs=1), [load(0, 1)]) == (201 + 200) * NS
    assert time_of(machine(l1__mshrs=2), [load(0, 1)]) == (2 + 200) * NS
    assert time_of(machine(l1__mshrs=1), [load(0, 0)]) == 201 * NS  # merged: needs none


def test_mshrs_are_a_ring():
    """Entries 5 and 6 are in the L2. The third request takes the MSHR of the first, until 501, though the second's is
    free at 402."""
    ops = [store(5, 6), load(0, 5, 6, chain_cycles=300)]
    assert time_of(machine(l1__mshrs=2), ops) == (501 + 100) * NS
    assert time_of(machine(l1__mshrs=3), ops) == 501 * NS


def test_what_is_behind_a_blocked_access_waits_too():
    """The second warp's load waits for an MSHR until 201; the third's, of a sector on its way, looks it up at 202: a
    hit."""
    warps = [load(0)], [load(1)], [load(0), store(2, chain_cycles=300)]
    assert time_of(machine(l1__mshrs=1), *warps) == (222 + 299 + 100) * NS


def test_as_many_stores_as_mshrs_may_be_in_flight():
    assert time_of(machine(l1__mshrs=1), [store(0, 1)]) == (101 + 100) * NS
    assert time_of(machine(l1__mshrs=2), [store(0, 1)]) == (2 + 100) * NS
    assert time_of(machine(l1__mshrs=1), [load(0, use_distance=0), store(1)]) == 201 * NS  # loads have their own


def test_a_blocked_store_holds_up_loads():
    """The second store waits until 101; the load behind it looks up at 102."""
    ops = [store(0, 1), load(0)]
    assert time_of(machine(l1__mshrs=1), ops) == (102 + 100) * NS


def test_a_store_leaves_the_lines_of_the_l1_as_they_are():
    """The last load at 202 hits."""
    ops = [load(0), store(0), load(0), store(1, chain_cycles=200)]
    assert time_of(M, ops) == (222 + 199 + 100) * NS


def test_atomics_and_bypassing_loads_go_to_the_l2():
    bypass = {"flags": FLAG_TIMED | FLAG_BYPASS_L1}
    assert time_of(M, [load(0), load(0, **bypass)]) == (201 + 100) * NS
    assert time_of(M, [load(0), atomic(0)]) == (201 + 100) * NS
    assert time_of(machine(l1__enabled=False), [load(0), load(0)]) == (201 + 100) * NS
    assert time_of(machine(l1__mshrs=1), [load(0, 1, **bypass)]) == (2 + 200) * NS  # they take no MSHR


def test_the_least_recently_used_line_leaves():
    """Eight ways: 0 to 7, 0 again, then 8 in the place of 1."""
    ops = [*[load(entry) for entry in range(8)], load(0), load(8)]
    assert run(M, [*ops, load(0)])["l1_hits"] == 2
    before = time_of(M, ops)
    assert time_of(M, [*ops, load(0)]) == before + 20 * NS
    assert time_of(M, [*ops, load(1)]) == before + 100 * NS


def test_l1s_are_empty_when_a_kernel_starts():
    chunk = grid([[load(0)]])
    starts = [0, 1000 * NS]
    _, _, ends = run_launches(M, [Launch([chunk], start_ps=start) for start in starts])
    assert ends == [201 * NS, (1001 + 100) * NS]
