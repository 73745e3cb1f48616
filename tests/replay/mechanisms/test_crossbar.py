"""Ports of SMs and slices (docs/model.md, Crossbar, slices and ports).

Slow ports, a sector each 40 ns: what has used the bucket of a port (65.5 ns) makes a later request wait until the
bucket's start and the time used.
"""

import pytest

from buddysim.trace import FLAG_BYPASS_L1, FLAG_TIMED
from tests.replay.bare import Launch, run_launches
from tests.replay.mechanisms.hand import BUCKET, NS, grid, load, machine, store, time_of

SLOW = "0.8 GB/s"  # 32 B in 40 ns
PAST_L1 = {"flags": FLAG_TIMED | FLAG_BYPASS_L1}


def test_a_store_takes_its_data_s_time_of_the_request_port():
    slow = machine(crossbar__request_bandwidth=SLOW)
    assert time_of(slow, [store((0, 15)), store(1)]) == (160 + 100) * NS
    assert time_of(slow, [store(0), store(1)]) == (40 + 100) * NS


def test_a_load_takes_a_sector_s_time_of_the_request_port():
    """The store is the seventh request, the loads' replies are the L2's within 303."""
    slow = machine(crossbar__request_bandwidth=SLOW, l1__enabled=False)
    loads = [load((0, 15), use_distance=0)] * 6
    assert time_of(slow, [*loads, store(1)]) == (240 + 100) * NS


def test_replies_share_the_reply_port():
    """Two lines of the L2, asked for at 301 and 302: the first four sectors take 160 ns from the bucket of 401 on, the
    last of the other four comes three sectors after their turn."""
    slow = machine(crossbar__reply_bandwidth=SLOW)
    bucket = 401 * NS // BUCKET * BUCKET
    ops = [store((0, 15), (1, 15)), load((0, 15), (1, 15), chain_cycles=300)]
    assert time_of(slow, ops) == bucket + (160 + 3 * 40) * NS
    assert time_of(slow, [store((0, 15)), load((0, 15), chain_cycles=300)]) == (401 + 3 * 40) * NS


def test_every_sm_has_its_own_ports():
    slow = machine(crossbar__request_bandwidth=SLOW, sm__count=2, sm__blocks=1)
    launch = Launch([grid([[store((0, 15)), store(1)]], [[store((2, 15)), store(3)]])])
    assert run_launches(slow, [launch])[0]["now_ps"] == (160 + 100) * NS


@pytest.mark.parametrize(("key", "apart_ns"), [("crossbar.reply_bandwidth", 4), ("l2.bandwidth", 4)])
def test_sectors_of_a_reply_follow_each_other_at_the_slower_of_the_two(key, apart_ns):
    slow = machine(**{key: "8 GB/s"})
    assert time_of(slow, [store((0, 15)), load((0, 15), chain_cycles=300)]) == (401 + 3 * apart_ns) * NS


def test_loads_and_stores_share_a_slice_s_port():
    """Four sectors stored take it for 160 ns; then two asked for, 80; then the last store's turn."""
    slow = machine(l2__bandwidth=SLOW)
    assert time_of(slow, [store((0, 15)), store(1)]) == (160 + 50) * NS
    ops = [store((0, 15)), load((0, 3), use_distance=0), store(1)]
    assert time_of(slow, ops) == (160 + 80 + 50) * NS


def test_every_slice_has_its_own_port():
    """Entries 0 and 1 lie in different slices of two."""
    slow = machine(l2__bandwidth=SLOW, l2__slices=2, l2__ways=16)
    assert time_of(slow, [store((0, 15)), store((1, 15))]) == (4 + 100) * NS
    assert time_of(slow, [store((0, 15)), store((0, 15))]) == (160 + 50) * NS


def test_what_goes_past_the_l1_uses_the_same_ports():
    slow = machine(crossbar__request_bandwidth=SLOW)
    assert time_of(slow, [load(0, use_distance=0, **PAST_L1), store(1)]) == 201 * NS
    assert time_of(slow, [*[load(0, use_distance=0, **PAST_L1)] * 6, store(1)]) == (240 + 100) * NS


def test_a_port_carries_no_more_than_a_bucket_in_a_bucket():
    """Requests of 40 ns each: the n-th waits for those before it."""
    slow = machine(crossbar__request_bandwidth=SLOW, l1__mshrs=64)
    for n in (2, 5, 20):
        assert time_of(slow, [store(*range(n))]) == ((n - 1) * 40 + 100) * NS


def test_a_port_that_idles_delays_nobody():
    slow = machine(crossbar__request_bandwidth=SLOW)
    assert time_of(slow, [store(0), store(1, chain_cycles=200)]) == (201 + 100) * NS
