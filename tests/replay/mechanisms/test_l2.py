"""The L2: waits of hits, misses, stores and atomics (docs/explanation/replay-model.md, L2)."""

import pytest

from buddysim.trace import ATOMIC_CONFLICTS_SHIFT, FLAG_BYPASS_L1, FLAG_TIMED
from tests.replay.mechanisms.hand import BUCKET, NS, atomic, load, machine, run, store, time_of

M = machine()
PAST_L1 = {"flags": FLAG_TIMED | FLAG_BYPASS_L1}


def test_an_mshr_merge_waits_for_the_sector_in_flight():
    """A sector requested at 1 is at the slice at 151; requested again at 2, past the L1, it is there no earlier."""
    count = run(M, [load(0, use_distance=0), load(0, **PAST_L1), store(1)])
    assert count["now_ps"] == (201 + 100) * NS
    assert (count["l2_read_mshr_merges"], count["l2_read_hits"], count["l2_read_misses"]) == (1, 0, 1)


def test_a_line_has_one_arrival_time():
    """Sector 0 would be at the slice at 151. At 150 sector 1 is requested, which arrives at 250, and both arrive then;
    so a request for sector 0 at 151 waits. At 151 sector 0 is valid, and stays so."""
    for second_ns, arrival_ns in ((100, 300), (101, 202)):
        begin = [
            load((0, 1), use_distance=0, **PAST_L1),
            load((0, 2), critical_path_cycles=second_ns - 1, use_distance=0, **PAST_L1),
        ]
        ops = [*begin, load((0, 1), **PAST_L1), store(1, critical_path_cycles=1), store(1, critical_path_cycles=200)]
        assert time_of(M, ops) == (arrival_ns + 200 + 100) * NS


def test_a_miss_waits_for_a_free_mshr():
    assert time_of(machine(l2__mshrs=1), [load(0, 1)]) == (201 + 100) * NS
    assert time_of(machine(l2__mshrs=2), [load(0, 1)]) == (2 + 200) * NS


def test_hits_need_no_mshr():
    assert time_of(machine(l2__mshrs=1), [store(1), load(0, 1, critical_path_cycles=300)]) == (301 + 200) * NS


def test_a_store_of_a_full_sector_makes_it_valid():
    assert time_of(M, [store(0), load(0, critical_path_cycles=300)]) == (301 + 100) * NS
    assert time_of(M, [store((0, 1, 1)), load((0, 2), critical_path_cycles=300)]) == (301 + 200) * NS


def test_a_load_of_a_partial_sector_fetches_it():
    ops = [store((0, 1, 0)), store((0, 1, 0)), load(0, critical_path_cycles=300)]
    assert time_of(M, ops) == (302 + 200) * NS
    assert time_of(M, [*ops, load(0, **PAST_L1)]) == (502 + 100) * NS  # then it is valid
    assert time_of(M, [store((0, 1, 0)), store((0, 1, 1)), load(0, critical_path_cycles=300)]) == (302 + 100) * NS


def test_a_partial_store_leaves_a_valid_sector_valid():
    assert time_of(M, [load(0), store((0, 1, 0)), load(0, critical_path_cycles=300, **PAST_L1)]) == (501 + 100) * NS


def test_stores_do_not_wait_for_fills():
    assert time_of(M, [load(0, use_distance=0), store(0), store(1, critical_path_cycles=150)]) == (152 + 100) * NS


def test_an_atomic_fetches_its_sectors_and_leaves_them_dirty():
    count = run(M, [atomic((0, 3))])
    assert (count["now_ps"], count["dirty_left"]) == ((201 + 2 + 1 + 2) * NS, 2)


def test_atomics_serialize_at_their_slice():
    """One sector in 40 ns. All are at the slice at 151: the second atomic starts 40 ns after the bucket's start, the
    third 80 ns after it.
    """
    slow = machine(l2__atomic_interval="40 ns")
    bucket = 151 * NS // BUCKET * BUCKET
    ends = [time_of(slow, [atomic(0, use_distance=0)] * n) for n in (1, 2, 3)]
    assert ends == [241 * NS, bucket + (80 + 50) * NS, bucket + (120 + 50) * NS]
    assert time_of(slow, [atomic((0, 3))]) == (204 + 80) * NS  # alone, it does not wait


def test_loads_do_not_wait_for_atomics():
    slow = machine(l2__atomic_interval="40 ns")
    assert time_of(slow, [atomic(0, use_distance=0), load(0, **PAST_L1), store(1)]) == (201 + 100) * NS


def test_a_fill_waits_until_its_victim_has_been_accepted():
    """A sector takes 1 us of the channel. Both dirty victims reach it in the bucket of 390: the second one is accepted
    1 us after the bucket's start, and its way is free 39 ns (to the channel) before that."""
    slow = machine(dram__pseudo_channel_bandwidth="32 MB/s", dram__load_to_use="1198 ns")
    fill_l2 = [store(entry) for entry in range(32)]
    bucket = 390 * NS // BUCKET * BUCKET
    one = time_of(slow, [*fill_l2, store(32, critical_path_cycles=269)])
    assert one == (301 + 100) * NS
    assert time_of(slow, [*fill_l2, store(32, 33, critical_path_cycles=269)]) == bucket + (1000 - 39 + 50) * NS


def test_clean_victims_are_evicted_at_once():
    slow = machine(dram__pseudo_channel_bandwidth="32 MB/s", dram__load_to_use="1198 ns")
    loads = [load(entry) for entry in range(32)]
    end = time_of(slow, loads)
    assert time_of(slow, [*loads, store(32, 33)]) == end + (1 + 100) * NS


def test_a_miss_fetches_the_other_half_of_its_pair():
    """The second load finds what the first one's fetch has brought; the other pair's sectors are not there."""
    pairs = machine(l2__fetch_granularity="64 B")
    first = load((0, 1))
    assert run(pairs, [first])["fill_sectors"] == 2
    assert run(M, [first])["fill_sectors"] == 1
    other_half, other_pair = (load((0, mask), critical_path_cycles=300, **PAST_L1) for mask in (2, 4))
    hit = time_of(pairs, [first, other_half])
    assert time_of(M, [first, other_half]) - hit == (100 - 2) * NS  # a burst more of the first fetch
    assert time_of(pairs, [first, other_pair]) - hit == (100 + 2) * NS


def test_valid_sectors_of_a_pair_are_not_fetched_again():
    pairs = machine(l2__fetch_granularity="64 B")
    assert run(pairs, [store((0, 1)), load((0, 2), critical_path_cycles=300)])["fill_sectors"] == 1
    assert run(pairs, [load((0, 15))])["fill_sectors"] == 4


def test_a_store_to_a_dirty_sector_occupies_its_slice_longer():
    """The stores are at the slice at 51, 52 and 53. The second takes 1 + 70 ns of it, the third comes when it has taken
    what these two and its own nanosecond leave of the time from 0 on."""
    slow = machine(l2__dirty_store_interval="70 ns")
    assert time_of(slow, [store(0)] * 3) == (1 + 1 + 70 + 1 + 70 + 50) * NS
    assert time_of(slow, [store((0, 1)), store((0, 2)), store((0, 4))]) == (3 + 100) * NS
    assert time_of(M, [store(0)] * 3) == (3 + 100) * NS


def test_a_store_to_a_clean_sector_occupies_its_slice_no_longer():
    slow = machine(l2__dirty_store_interval="70 ns")
    ops = [load((0, 7)), store((0, 1), critical_path_cycles=300), store((0, 2)), store((0, 4))]
    assert time_of(slow, ops) == time_of(M, ops)


def test_the_oldest_dirty_lines_of_a_set_are_written_back_and_stay():
    """Two sectors may be dirty: the third store cleans the line used longest ago."""
    few = machine(l2__max_dirty="64 B")
    count = run(few, [store(0), store(1), store(0), store(2)])
    assert (count["writeback_sectors"], count["dirty_left"]) == (1, 2)
    for entry, rewritten in ((0, 0), (1, 1), (2, 0)):  # the line that was clean is dirtied anew
        again = run(few, [store(0), store(1), store(0), store(2), store(entry)])
        assert again["sectors_made_dirty"] - count["sectors_made_dirty"] == rewritten
    clean = [store(0), store(1), store(0), store(2), load(1, critical_path_cycles=300)]
    assert time_of(few, clean) == (3 + 1 + 300 + 100) * NS  # it hits
    assert run(M, [store(0), store(1), store(2)])["writeback_sectors"] == 0


def test_a_partial_sector_is_fetched_again_after_a_writeback():
    few = machine(l2__max_dirty="32 B")
    ops = [store((0, 1, 0)), store(1), load(0, critical_path_cycles=300)]
    assert time_of(few, ops) == time_of(M, ops) == (302 + 200) * NS
    assert run(few, [*ops, store((0, 1, 0))])["sectors_made_dirty"] == 3


def test_atomics_clean_their_sets_too():
    few = machine(l2__max_dirty="32 B")
    assert run(few, [atomic(0, use_distance=0), atomic(1, use_distance=0)])["writeback_sectors"] == 1


def test_a_store_waits_until_its_write_backs_are_accepted():
    """A sector takes 1 us of the channel: the second line that leaves is taken 1 us after its bucket's start."""
    slow = machine(dram__pseudo_channel_bandwidth="32 MB/s", dram__load_to_use="1198 ns", l2__max_dirty="32 B")
    one = time_of(slow, [store(0), store(1)])
    assert one == (2 + 100) * NS
    bucket = (50 + 2 + 39) * NS // BUCKET * BUCKET
    assert time_of(slow, [store(0), store(1), store(2)]) == bucket + (1000 - 39 + 50) * NS


@pytest.mark.parametrize(("atomic_conflicts", "requests"), [(0, 1), (1, 2), (2, 3), (31, 32)])
def test_conflicting_lanes_of_an_atomic_send_one_request_each(atomic_conflicts, requests):
    """All sectors are in the L2. A request enters the L1, and its slice, 1 ns after the one before; it takes 1 ns."""
    flags = FLAG_TIMED | atomic_conflicts << ATOMIC_CONFLICTS_SHIFT
    ops = [store((0, 15)), atomic(0, flags=flags, critical_path_cycles=300)]
    assert time_of(machine(sm__split_conflicting_atomics=True), ops) == (301 + requests - 1 + 101) * NS
    assert time_of(machine(), ops) == (301 + 101) * NS
    count = run(machine(sm__split_conflicting_atomics=True), ops)
    assert (count["load_sectors"], count["line_accesses"]) == (requests, 1 + requests)


def test_requests_of_conflicting_lanes_alternate_between_the_lines():
    """Two lines of two sectors and three atomic_conflicts: seven sectors, five requests."""
    ops = [atomic((0, 6), (1, 12), flags=FLAG_TIMED | 3 << ATOMIC_CONFLICTS_SHIFT)]
    count = run(machine(sm__split_conflicting_atomics=True), ops)
    assert (count["load_sectors"], count["line_accesses"], count["l2_read_misses"]) == (7, 5, 4)
