"""Partitioned L2: local and remote lines, and invalidation of replicas (docs/explanation/replay-model.md, L2).

Two slices are two partitions: entry 0 lies in the first, entry 1 in the second. There is one SM, which is of the first.
A request to the second partition takes 40 ns longer, there and back.
"""

from buddysim.trace import FLAG_BYPASS_L1, FLAG_TIMED
from tests.reference.replay.memory.address_map import hash_index
from tests.replay.bare import Launch, run_launches
from tests.replay.mechanisms.hand import NS, atomic, grid, load, machine, run, store, time_of

TWO = {
    "l2__slices": 2,
    "l2__size": "8 KiB",
    "l2__partitions": 2,
    "l2__partition_latency": "40 ns",
    "dram__channels": 2,
}
M = machine(**TWO)
PAST_L1 = {"flags": FLAG_TIMED | FLAG_BYPASS_L1}


def test_remote_partition_takes_longer():
    assert time_of(M, [load(0)]) == 201 * NS
    assert time_of(M, [load(1)]) == (201 + 40) * NS
    assert time_of(M, [store(0)]) == 101 * NS
    assert time_of(M, [store(1)]) == (101 + 40) * NS
    assert time_of(M, [atomic(1)]) == (201 + 1 + 40) * NS


def test_a_remote_load_leaves_a_local_replica():
    count = run(M, [load(1), load(1, **PAST_L1)])
    assert count["now_ps"] == (241 + 100) * NS
    assert (count["l2_read_hits"], count["l2_read_misses"], count["l2_lines"]) == (1, 1, 2)


def test_the_home_slice_holds_the_line_too():
    """The copy lacks sector 1, which the home has since the store: 40 more than a near hit."""
    assert time_of(M, [store((1, 2)), load(1), load((1, 2), **PAST_L1)]) == (242 + 140) * NS


def test_a_load_waits_for_a_pending_replica():
    """It is at the local slice at 191; requested at 2, from there on with the first."""
    count = run(M, [load(1, use_distance=0), load(1, **PAST_L1)])
    assert count["now_ps"] == 241 * NS
    assert (count["l2_read_mshr_merges"], count["l2_read_misses"]) == (1, 1)


def test_a_store_invalidates_its_sectors_in_replicas():
    remote = [load((1, 3)), store((1, 1)), load((1, 1), critical_path_cycles=300, **PAST_L1)]
    assert time_of(M, remote) == (244 + 300 + 140) * NS
    other = [load((1, 3)), store((1, 1)), load((1, 2), critical_path_cycles=300, **PAST_L1)]
    assert time_of(M, other) == (244 + 300 + 100) * NS


def test_an_atomic_invalidates_its_sectors_in_replicas():
    assert (
        time_of(M, [load(1), atomic(1), load(1, critical_path_cycles=300, **PAST_L1)]) == (241 + 141 + 299 + 140) * NS
    )


def test_a_replica_needs_an_mshr_of_its_slice():
    """Both lines lie in the second partition; the copy of the second waits until the first has come, at 191."""
    assert time_of(machine(**TWO, l2__mshrs=1), [load(1, 2)]) == (191 + 20 + 100 + 20 + 50) * NS
    assert time_of(machine(**TWO, l2__mshrs=2), [load(1, 2)]) == (2 + 240) * NS


def test_sms_of_the_second_half_are_of_the_second_partition():
    config = machine(**TWO, sm__count=2)
    for second, ns in ((1, 201), (3, 241)):  # entry 3 lies in the first partition
        assert run_launches(config, [Launch([grid([[load(0)]], [[load(second)]])])])[2] == [ns * NS]


def test_replicas_take_ways_of_their_slice():
    """A slice has 16 ways: with 15 replicas the first line is still resident."""
    small = machine(**{**TWO, "l2__size": "4 KiB"}, l2__ways=16)
    remote = [entry for entry in range(64) if hash_index(entry, 2) == 1]
    for replicas, ns in ((15, 100), (16, 200)):
        ops = [load(0), *[load(entry) for entry in remote[:replicas]], load(0, **PAST_L1)]
        assert time_of(small, ops) == (201 + replicas * 240 + ns) * NS
