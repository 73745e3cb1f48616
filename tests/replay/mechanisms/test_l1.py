"""The L1 and what blocks it (docs/explanation/replay-model.md, SM and L1)."""

import pytest

from buddysim.trace import BANK_WORDS_SHIFT, FLAG_BYPASS_L1, FLAG_TIMED
from tests.replay.bare import Launch, run_launches
from tests.replay.mechanisms.hand import NS, atomic, grid, load, machine, run, store, time_of

M = machine()


def test_latencies_of_l1_l2_and_device_memory():
    assert time_of(M, [load(0)]) == (1 + 200) * NS
    assert (
        time_of(M, [store(0), load(0, critical_path_cycles=300)]) == (301 + 100) * NS
    )  # a store allocates in the L2 alone
    assert time_of(M, [load(0), load(0)]) == (201 + 20) * NS


@pytest.mark.parametrize(("lines_per_cycle", "third_ps"), [(1, 3 * NS), (2, 2 * NS), (4, 1500)])
def test_lines_enter_in_order(lines_per_cycle, third_ps):
    wide = machine(l1__lines_per_cycle=lines_per_cycle, crossbar__request_bandwidth="128 GB/s")
    assert time_of(wide, [store(0, 1, 2)]) == third_ps + 100 * NS


@pytest.mark.parametrize(("lines", "held_ns"), [(32, 0), (33, 1), (40, 8)])
def test_lines_beyond_a_queue_of_32_hold_their_warp(lines, held_ns):
    """The instruction has issued when all but 32 of its lines are in."""
    assert time_of(M, [store(*[0] * lines), store(1, critical_path_cycles=60)]) == (1 + held_ns + 60 + 100) * NS


@pytest.mark.parametrize(("lines", "held_ns"), [(32, 0), (33, 0), (34, 2), (40, 8)])
def test_lines_beyond_a_queue_of_32_hold_their_scheduler(lines, held_ns):
    """The second block's warp, ready at 1, ends at 2, or when the scheduler goes on; the third block begins then."""
    blocks = [[store(*[0] * lines)]], [[]], [[store(1, critical_path_cycles=60)]]
    tail = {"tail_gap_instructions": 0, "tail_critical_path_cycles": 1}
    ended_ns = 1 + held_ns if held_ns else 2
    launch = Launch([grid(*blocks, tail=tail)], warps=1)
    assert run_launches(machine(sm__blocks=2), [launch])[0]["now_ps"] == (ended_ns + 60 + 100) * NS


def test_requests_queued_at_an_l1_do_not_delay_other_sms():
    """The first SM's load waits behind 240 lines, so the second SM's gets the L2's only MSHR."""
    both = machine(sm__count=2, l2__mshrs=1)
    first = [store(*[0] * 240)], [load(1, critical_path_cycles=2)]
    second = [load(2, critical_path_cycles=3), store(3, critical_path_cycles=600)], []
    launch = Launch([grid(first, second)], warps=2)
    assert run_launches(both, [launch])[0]["now_ps"] == (3 + 200 + 599 + 100) * NS


def test_an_mshr_merge_waits_for_the_sector_in_flight():
    """The second warp's load of the same sector at 2 arrives with the first one's at 201, not as a hit at 22."""
    count = run(M, [load(0)], [load(0), store(1)])
    assert count["now_ps"] == (201 + 100) * NS
    assert (count["l1_mshr_merges"], count["l1_hits"], count["l2_read_misses"]) == (1, 0, 1)


@pytest.mark.parametrize(("request_ns", "used_ns"), [(181, 201), (182, 202), (200, 220), (201, 221)])
def test_a_hit_takes_its_latency_and_an_mshr_merge_waits_for_the_fill(request_ns, used_ns):
    """The sector is there at 201."""
    assert (
        time_of(M, [load(0, use_distance=0)], [load(0, critical_path_cycles=request_ns), store(1)])
        == (used_ns + 100) * NS
    )


def test_a_line_has_one_arrival_time():
    """Sector 1 is requested at 101 and arrives at 301; sector 0, in flight since 1, waits for it, too, if requested at
    102."""
    ops = [load((0, 1), use_distance=0), load((0, 2), critical_path_cycles=100, use_distance=0), load((0, 1)), store(1)]
    assert time_of(M, ops) == (301 + 100) * NS


def test_an_access_waits_for_a_free_mshr():
    assert time_of(machine(l1__mshrs=1), [load(0, 1)]) == (201 + 200) * NS
    assert time_of(machine(l1__mshrs=2), [load(0, 1)]) == (2 + 200) * NS
    assert time_of(machine(l1__mshrs=1), [load(0, 0)]) == 201 * NS  # merged: needs none


@pytest.mark.parametrize(("mshrs", "entries", "arrives_ns"), [(2, (0, 5, 6), 402 + 100), (3, (0, 1, 5, 6), 501 + 100)])
def test_the_earlier_free_of_the_next_two_mshrs_is_taken(mshrs, entries, arrives_ns):
    """Entries 5 and 6 are in the L2; the others take their MSHRs until 501 and 502, entry 5 until 402 or 403."""
    ops = [store(5, 6), load(*entries, critical_path_cycles=300)]
    assert time_of(machine(l1__mshrs=mshrs), ops) == arrives_ns * NS


def test_a_blocked_access_blocks_later_ones():
    """The second warp's load waits for an MSHR until 201; the third's, of a sector in flight, looks it up at 202: a
    hit."""
    warps = [load(0)], [load(1)], [load(0), store(2, critical_path_cycles=300)]
    assert time_of(machine(l1__mshrs=1), *warps) == (222 + 299 + 100) * NS


def test_as_many_stores_as_mshrs_may_be_in_flight():
    assert time_of(machine(l1__mshrs=1), [store(0, 1)]) == (101 + 100) * NS
    assert time_of(machine(l1__mshrs=2), [store(0, 1)]) == (2 + 100) * NS
    assert time_of(machine(l1__mshrs=1), [load(0, use_distance=0), store(1)]) == 201 * NS  # loads have their own


def test_a_blocked_store_blocks_loads():
    """The second store waits until 101; the load behind it looks up at 102."""
    ops = [store(0, 1), load(0)]
    assert time_of(machine(l1__mshrs=1), ops) == (102 + 100) * NS


def test_a_store_leaves_the_lines_of_the_l1_as_they_are():
    """The last load at 202 hits."""
    ops = [load(0), store(0), load(0), store(1, critical_path_cycles=200)]
    assert time_of(M, ops) == (222 + 199 + 100) * NS


def test_atomics_and_bypassing_loads_go_to_the_l2():
    bypass = {"flags": FLAG_TIMED | FLAG_BYPASS_L1}
    assert time_of(M, [load(0), load(0, **bypass)]) == (201 + 100) * NS
    assert time_of(M, [load(0), atomic(0)]) == (201 + 101) * NS
    assert time_of(machine(l1__enabled=False), [load(0), load(0)]) == (201 + 100) * NS
    assert time_of(machine(l1__mshrs=1), [load(0, 1, **bypass)]) == (2 + 200) * NS  # they take no MSHR


def test_the_least_recently_used_line_is_evicted():
    """Eight ways: 0 to 7, 0 again, then 8 replaces 1."""
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


@pytest.mark.parametrize(
    ("sms", "kernels", "hits"), [(1, 1, False), (2, 1, True), (2, 2, False), (3, 2, True), (1, 0, True)]
)
def test_a_kernel_empties_only_the_l1s_of_sms_on_which_it_runs(sms, kernels, hits):
    """A warp loads a line again at 1,000 ns; kernels of one block have started in between, each on the next SM."""
    first = Launch([grid([[load(0), load(0, critical_path_cycles=800)]])])
    others = [Launch([grid([[store(64)]])], start_ps=(400 + number) * NS) for number in range(kernels)]
    _, _, ended = run_launches(machine(sm__count=sms), [first, *others])
    assert ended[0] == (1000 + (20 if hits else 100)) * NS


def test_a_kernel_empties_an_l1_once():
    """Its second block on an SM finds what its first has loaded."""
    one, two = [[load(0)]], [[load(0)]]
    apart = machine(sm__count=1, sm__blocks=1)
    assert run_launches(apart, [Launch([grid(one, two)])])[0]["now_ps"] == (201 + 1 + 20) * NS


@pytest.mark.parametrize(
    ("lines", "cycles"),
    [
        (((0, 1), (1, 2), (2, 4), (3, 8)), 1),  # every sector in a bank of its own
        (((0, 1), (1, 1), (2, 1), (3, 1)), 4),  # a column
        (((0, 15), (1, 15), (2, 15)), 3),
        (((0, 3), (1, 6), (2, 12)), 3),
        (((0, 3), (1, 6), (2, 9)), 2),  # the second line's cycle has banks 0 and 3 left
        (((0, 4), (1, 5), (2, 1)), 2),  # the second line's sector 0 went with the first: bank 0 is left
        (((0, 4), (1, 5), (2, 4)), 3),
    ],
)
def test_lines_enter_banks_together_up_to_the_first_conflict(lines, cycles):
    banked = machine(l1__bank_conflicts="sector", crossbar__request_bandwidth="1024 GB/s", l2__bandwidth="1024 GB/s")
    assert time_of(banked, [store(*lines), store(9)]) == (cycles + 1 + 100) * NS
    plain = machine(crossbar__request_bandwidth="1024 GB/s", l2__bandwidth="1024 GB/s")
    assert time_of(plain, [store(*lines), store(9)]) == (len(lines) + 1 + 100) * NS


def test_every_instruction_begins_with_free_banks():
    banked = machine(l1__bank_conflicts="sector", crossbar__request_bandwidth="1024 GB/s")
    assert time_of(banked, [store((0, 1)), store((1, 2))]) == (2 + 100) * NS


@pytest.mark.parametrize(
    ("lines", "cycles"),
    [
        ((0, 1, 2, 3), 1),  # a bank of tags each
        ((2, 3, 4), 1),  # 4 is in bank 1, as its pairs of bits are 1 and 0
        ((3, 4, 5, 6), 2),  # 3 and 6
        ((0, 5, 10, 15), 4),  # all in bank 0
        ((0, 5, 1, 4), 2),
        ((0, 1, 2, 3, 4), 2),
        ((16, 64, 256, 1024), 4),  # every pair counts: all in bank 1
        (range(32), 8),
    ],
)
def test_lines_in_tag_banks_of_their_own_enter_together(lines, cycles):
    banked = machine(
        l1__bank_conflicts="tag_and_data", crossbar__request_bandwidth="1024 GB/s", l2__bandwidth="1024 GB/s"
    )
    assert time_of(banked, [store(*lines), store(9)]) == (cycles + 1 + 100) * NS


@pytest.mark.parametrize(("line", "cycle"), [(1, 0), (6, 0), (10, 2), (15, 2)])
def test_lines_of_one_tag_bank_enter_one_after_the_other(line, cycle):
    """At 401 the load finds lines 0 and 5, both in bank 0, and misses the last one."""
    banked = machine(l1__bank_conflicts="tag_and_data")
    assert time_of(banked, [load(0), load(5), load(0, 5, line)]) == (401 + cycle + 200) * NS


@pytest.mark.parametrize(
    ("lines", "code", "cycles"),
    [
        (((0, 1),), 0, 1),  # nothing flags: a sector takes one
        (((0, 15), (1, 15)), 0, 2),  # eight sectors take two: 256 B
        (((0, 15), (1, 15), (2, 1)), 0, 3),
        (((0, 15), (1, 15)), 31, 1),  # a word in two: one of a bank each
        (((0, 1),), 6, 7),
        (((0, 1),), 31, 32),
        (((0, 1), (5, 1)), 0, 2),  # the tags take longer
    ],
)
def test_words_of_one_data_bank_serialize(lines, code, cycles):
    banked = machine(
        l1__bank_conflicts="tag_and_data", crossbar__request_bandwidth="1024 GB/s", l2__bandwidth="1024 GB/s"
    )
    flags = FLAG_TIMED | code << BANK_WORDS_SHIFT
    assert time_of(banked, [store(*lines, flags=flags), store(9)]) == (cycles + 1 + 100) * NS


@pytest.mark.parametrize("code", [0, 1, 6, 31])
def test_a_hit_arrives_with_its_last_data_bank_cycle(code):
    """The hit at 201 has its first words at 221, and its others in the cycles after that."""
    flags = FLAG_TIMED | code << BANK_WORDS_SHIFT
    assert (
        time_of(machine(l1__bank_conflicts="tag_and_data"), [load(0), load(0, flags=flags)]) == (201 + 20 + code) * NS
    )
    assert time_of(machine(), [load(0), load(0, flags=flags)]) == (201 + 20) * NS


def test_data_bank_cycles_of_bypassing_loads_occupy_the_port_only():
    banked = machine(l1__bank_conflicts="tag_and_data")
    past = FLAG_TIMED | FLAG_BYPASS_L1 | 6 << BANK_WORDS_SHIFT
    assert time_of(banked, [load(0, flags=past)]) == (1 + 200) * NS
    assert time_of(banked, [load(0, flags=past, use_distance=0), load(1, critical_path_cycles=1)]) == (1 + 7 + 200) * NS


def test_atomics_have_no_data_bank_cycles():
    """The bits are atomic_conflicts of threads there."""
    banked = machine(l1__bank_conflicts="tag_and_data")
    flags = FLAG_TIMED | 6 << BANK_WORDS_SHIFT
    assert time_of(banked, [atomic(0, flags=flags, use_distance=0), load(1)]) == (2 + 200) * NS


@pytest.mark.parametrize(("merges", "used_ns"), [(0, 201), (1, 221), (2, 201)])
def test_mshr_merges_of_a_line_are_limited(merges, used_ns):
    """The second warp's load merges; with one merge a line the third's waits until 201 and is a hit then."""
    few = machine(l1__max_mshr_merges=merges)
    assert time_of(few, [load(0)], [load(0)], [load(0), store(1)]) == (used_ns + 100) * NS


def test_a_line_at_its_merge_limit_blocks_the_l1():
    """The fourth warp's load of another line enters behind the third's, at 202."""
    warps = [load(0)], [load(0)], [load(0)], [load(5)]
    assert time_of(machine(l1__max_mshr_merges=1), *warps) == (202 + 200) * NS
    assert time_of(machine(l1__max_mshr_merges=2), *warps) == (4 + 200) * NS


def test_mshr_merges_are_counted_anew_when_all_have_arrived():
    """One merge with sector 0, which has come when a load merges with sector 1; line 5 enters the L1 behind it."""
    few = machine(l1__max_mshr_merges=1)
    first = [load((0, 1)), load((0, 2), critical_path_cycles=300)]
    second = [load((0, 1)), load((0, 2), critical_path_cycles=300), load(5)]
    third = [load(5, critical_path_cycles=400)]
    assert time_of(few, first, second, third) == time_of(machine(), first, second, third)
