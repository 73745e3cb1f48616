"""Barriers, thread blocks and kernels (docs/explanation/replay-model.md, Time)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.replay.bare import Launch, run_launches
from tests.replay.mechanisms.hand import NS, barrier, grid, load, machine, store, time_of

M = machine()


def ends(config, *launches):
    return run_launches(config, launches)[2]


def test_a_barrier_waits_for_the_last_warp():
    """The second warp arrives at 51; the first continues an instruction later."""
    assert time_of(M, [barrier(), store(0)], [store(1, critical_path_cycles=50), barrier()]) == (51 + 1 + 1 + 100) * NS
    slow = machine(sm__issue_interval="3 ns")
    assert (
        time_of(slow, [barrier(), store(0)], [store(1, critical_path_cycles=50), barrier()]) == (53 + 3 + 3 + 100) * NS
    )


def test_warps_continue_after_the_barrier_latency():
    slow = machine(sm__barrier_latency="22 ns")
    assert (
        time_of(slow, [barrier(), store(0)], [store(1, critical_path_cycles=50), barrier()])
        == (51 + 1 + 22 + 1 + 100) * NS
    )


def test_barrier_arrivals_of_an_sm_serialize():
    """The second warp arrives at 51 and is counted at 61. Of two that arrive at 1 and 2 the second is counted at 21.

    Those of another block, which arrive at 3 and 4, are counted at 41.
    """
    slow = machine(sm__barrier_arrival_interval="10 ns")
    assert (
        time_of(slow, [barrier(), store(0)], [store(1, critical_path_cycles=50), barrier()]) == (61 + 1 + 1 + 100) * NS
    )
    assert time_of(slow, [barrier(), store(0)], [barrier()]) == (21 + 1 + 1 + 100) * NS
    blocks = grid([[barrier(), store(0)], [barrier()]], [[barrier(), store(1)], [barrier()]])
    both = machine(sm__barrier_arrival_interval="10 ns", kernel__block_launch_interval="0 ns")
    assert ends(both, Launch([blocks], warps=2)) == [(41 + 1 + 1 + 100) * NS]


def test_barrier_release_waits_for_the_last_arrival():
    """The second warp ends at 150, when the barrier is still busy with the first one, until 201."""
    slow = machine(sm__barrier_arrival_interval="200 ns")
    assert time_of(slow, [barrier(), store(0)], [store(1, critical_path_cycles=50)]) == (201 + 1 + 1 + 100) * NS
    quick = machine(sm__barrier_arrival_interval="20 ns")
    assert time_of(quick, [barrier(), store(0)], [store(1, critical_path_cycles=50)]) == (150 + 1 + 1 + 100) * NS


def test_a_barrier_does_not_wait_for_exited_warps():
    """The second warp ends when its store is acknowledged, at 150."""
    assert time_of(M, [barrier(), store(0)], [store(1, critical_path_cycles=50)]) == (150 + 1 + 1 + 100) * NS


def test_a_barrier_waits_for_its_own_block_alone():
    blocks = grid([[barrier(), store(0)]], [[store(1, critical_path_cycles=50), barrier()]])
    assert ends(M, Launch([blocks])) == [151 * NS]  # the second block starts at 1
    one_issues_late = grid(
        [[barrier(), store(0, critical_path_cycles=100)]], [[store(1, critical_path_cycles=50), barrier()]]
    )
    assert ends(M, Launch([one_issues_late])) == [(2 + 100 + 100) * NS]


def test_blocks_of_an_sm_start_one_after_the_other():
    late = machine(kernel__block_launch_interval="30 ns", kernel__block_overhead="7 ns")
    assert ends(late, Launch([grid(*[[[store(i)]] for i in range(3)])])) == [(2 * 30 + 7 + 1 + 100) * NS]


@pytest.mark.parametrize(
    ("limit", "launch"),
    [
        ({"sm__blocks": 1}, {}),
        ({"sm__threads": 100, "sm__warps": 3}, {"threads": 51}),
        ({"sm__warps": 3}, {"warps": 3}),
        ({"sm__registers": 511}, {"registers": 256}),
        ({"sm__shared_memory": "1023 B"}, {"shared": 512}),
    ],
)
def test_resources_limit_the_blocks_of_an_sm(limit, launch):
    """The second block starts when the first one has ended, at 101; where there is one more of everything, at 1."""
    blocks = grid([[store(0)]], [[store(1)]])
    assert ends(machine(**limit), Launch([blocks], **launch)) == [(101 + 1 + 100) * NS]
    more = {
        "sm__blocks": 2, "sm__threads": 128, "sm__warps": 4, "sm__registers": 512, "sm__shared_memory": "1 KiB"
    }  # fmt: skip
    assert ends(machine(**{key: more[key] for key in limit}), Launch([blocks], **launch)) == [(1 + 1 + 100) * NS]


def test_warp_slots_are_freed_at_exit_and_other_resources_with_the_block():
    """The first block's second warp ends at 102 and its first at 201: only then do the resources suffice."""
    blocks = grid([[load(0)], [store(1)]], [[store(2)], [store(3)]])
    assert ends(machine(sm__blocks=1), Launch([blocks], warps=2)) == [(201 + 2 + 100) * NS]


def test_blocks_are_dispatched_to_sms_round_robin():
    config = machine(sm__count=2, kernel__block_launch_interval="30 ns")
    assert ends(config, Launch([grid(*[[[store(i)]] for i in range(3)])])) == [(30 + 1 + 100) * NS]
    one = Launch([grid([[store(0)]])])
    assert ends(config, one, one) == [101 * NS, 101 * NS]  # the second kernel begins where the first one left off
    assert ends(config, one, one, one) == [101 * NS, 101 * NS, 131 * NS]


def test_free_resources_go_to_the_kernel_that_started_first():
    """An SM that holds one block; the first kernel has two."""
    config = machine(sm__blocks=1)
    first, second = Launch([grid([[store(0)]], [[store(1)]])]), Launch([grid([[store(2)]])], start_ps=50 * NS)
    assert ends(config, first, second) == [202 * NS, 303 * NS]
    assert ends(config, Launch(second.chunks), first) == [101 * NS, 303 * NS]


@pytest.mark.parametrize("cut", [False, True])
def test_dispatch_to_a_freed_sm_does_not_move_the_round_robin(cut):
    """The first kernel's third block follows its first on SM 0, at 150, though its chunk has to be requested then. So
    at 260 dispatch continues at SM 0, which starts blocks again at 300.
    """
    config = machine(sm__count=2, sm__blocks=1, kernel__block_launch_interval="150 ns")
    blocks = [[[store(number)]] for number in range(3)]
    chunks = [grid(*blocks[:2]), grid(blocks[2])] if cut else [grid(*blocks)]
    assert ends(config, Launch(chunks), Launch([grid([[store(3)]])], start_ps=260 * NS)) == [251 * NS, 401 * NS]


@given(
    sizes=st.lists(st.integers(1, 6), min_size=2, max_size=3),
    cuts=st.lists(st.booleans(), min_size=18, max_size=18),
    starts=st.lists(st.integers(0, 300), min_size=3, max_size=3),
    latencies=st.lists(st.integers(1, 90), min_size=18, max_size=18),
    sms=st.integers(1, 4),
)
@settings(max_examples=60, deadline=None)
def test_chunks_of_a_kernel_do_not_change_results(sizes, cuts, starts, latencies, sms):
    config = machine(sm__count=sms, sm__blocks=2)
    whole, cut = [], []
    for kernel, n_blocks in enumerate(sizes):
        chunks = [[]]
        for number in range(n_blocks):
            index = 6 * kernel + number
            if cuts[index] and chunks[-1]:
                chunks.append([])
            chunks[-1].append([[load(index, critical_path_cycles=latencies[index]), store(32 + index)]])
        start = starts[kernel] * NS
        whole.append(Launch([grid(*[block for chunk in chunks for block in chunk])], start_ps=start))
        cut.append(Launch([grid(*chunk) for chunk in chunks], start_ps=start))
    assert run_launches(config, whole) == run_launches(config, cut)


def test_warps_of_an_sm_start_one_after_the_other():
    late = machine(kernel__warp_launch_interval="30 ns")
    two = grid(*[[[store(2 * i)], [store(2 * i + 1)]] for i in range(2)])
    assert ends(late, Launch([two], warps=2)) == [(3 * 30 + 1 + 1 + 100) * NS]


def test_a_block_that_does_not_wait_for_stores_frees_resources_at_once():
    """The first block's store issues at 1 and the block ends a cycle later; the kernel ends with the last store."""
    blocks = grid([[store(0)]], [[store(1)]])
    assert ends(machine(sm__blocks=1), Launch([blocks])) == [(101 + 1 + 100) * NS]
    free = {"sm__blocks": 1, "sm__exit_waits_for_stores": False}
    assert ends(machine(**free), Launch([blocks])) == [(2 + 1 + 100) * NS]
    loads = grid([[load(0, use_distance=0)]], [[store(1)]])
    assert ends(machine(**free), Launch([loads])) == [(201 + 1 + 100) * NS]


def test_a_kernel_ends_when_all_its_stores_have_been_acknowledged():
    """Those of blocks that ended before, too: of the second block nothing is left at 101."""
    free = machine(sm__blocks=1, sm__exit_waits_for_stores=False)
    blocks = grid([[store(0)]], [[barrier()]])
    assert ends(free, Launch([blocks])) == [101 * NS]
    assert ends(free, Launch([grid([[store(0)]], [[barrier(critical_path_cycles=97)]])])) == [101 * NS]
    assert ends(free, Launch([grid([[store(0)]], [[barrier(critical_path_cycles=120)]])])) == [123 * NS]
