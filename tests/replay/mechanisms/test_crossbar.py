"""Ports of SMs and slices (docs/explanation/replay-model.md, Crossbar, slices and ports).

Slow ports transfer a sector in 40 ns. A request waits until the start of its bucket (65.5 ns) plus the time that
earlier requests use of the bucket.
"""

import numpy as np
import pytest

from buddysim.trace import FLAG_BYPASS_L1, FLAG_TIMED
from tests.replay.bare import Launch, run_launches
from tests.replay.mechanisms.hand import BUCKET, NS, grid, load, machine, store, time_of

SLOW = "0.8 GB/s"  # 32 B in 40 ns
PAST_L1 = {"flags": FLAG_TIMED | FLAG_BYPASS_L1}


def test_a_store_occupies_the_request_port_for_its_sectors():
    slow = machine(crossbar__request_bandwidth=SLOW)
    assert time_of(slow, [store((0, 15)), store(1)]) == (160 + 100) * NS
    assert time_of(slow, [store(0), store(1)]) == (40 + 100) * NS


def test_a_load_occupies_the_request_port_for_one_sector():
    """The store is the seventh request, the loads' replies are the L2's within 303."""
    slow = machine(crossbar__request_bandwidth=SLOW, l1__enabled=False)
    loads = [load((0, 15), use_distance=0)] * 6
    assert time_of(slow, [*loads, store(1)]) == (240 + 100) * NS


def test_replies_serialize_at_the_reply_port():
    """Two lines of the L2, requested at 301 and 302: the first four sectors take 160 ns from the bucket of 401 on, and
    the last of the other four arrives three sectors later."""
    slow = machine(crossbar__reply_bandwidth=SLOW)
    bucket = 401 * NS // BUCKET * BUCKET
    ops = [store((0, 15), (1, 15)), load((0, 15), (1, 15), critical_path_cycles=300)]
    assert time_of(slow, ops) == bucket + (160 + 3 * 40) * NS
    assert time_of(slow, [store((0, 15)), load((0, 15), critical_path_cycles=300)]) == (401 + 3 * 40) * NS


def test_every_sm_has_its_own_ports():
    slow = machine(crossbar__request_bandwidth=SLOW, sm__count=2, sm__blocks=1)
    launch = Launch([grid([[store((0, 15)), store(1)]], [[store((2, 15)), store(3)]])])
    assert run_launches(slow, [launch])[0]["now_ps"] == (160 + 100) * NS


@pytest.mark.parametrize(("key", "apart_ns"), [("crossbar.reply_bandwidth", 4), ("l2.bandwidth", 4)])
def test_sectors_of_a_reply_are_spaced_by_the_slower_port(key, apart_ns):
    slow = machine(**{key: "8 GB/s"})
    assert time_of(slow, [store((0, 15)), load((0, 15), critical_path_cycles=300)]) == (401 + 3 * apart_ns) * NS


def test_loads_and_stores_serialize_at_the_slice_port():
    """Four stored sectors take 160 ns, two loaded sectors 80 ns; then the last store starts, whose last sector passes
    120 ns later."""
    slow = machine(l2__bandwidth=SLOW)
    assert time_of(slow, [store((0, 15)), store((1, 15))]) == (160 + 120 + 50) * NS
    ops = [store((0, 15)), load((0, 3), use_distance=0), store((1, 15))]
    assert time_of(slow, ops) == (160 + 80 + 120 + 50) * NS


@pytest.mark.parametrize(
    ("key", "queues"),
    [
        ("crossbar.request_bandwidth", False),
        ("crossbar.request_bandwidth", True),
        ("l2.bandwidth", False),
        ("l2.bandwidth", True),
    ],
)
def test_a_store_is_acknowledged_when_its_last_sector_has_passed(key, queues):
    """A sector takes 400 ns of the slow port, and as long to the slice, or back."""
    slow = machine(**{key: "0.08 GB/s", "crossbar.input_queued": queues})
    assert time_of(slow, [store(0)]) == (1 + 400 + 50) * NS
    assert time_of(slow, [store((0, 15))]) == (1 + 4 * 400 + 50) * NS


@pytest.mark.parametrize(
    ("key", "queues", "time_ns"),
    [
        ("crossbar.request_bandwidth", False, 400 + 3 + 50),
        ("crossbar.request_bandwidth", True, 4 * 400 + 50),
        ("crossbar.reply_bandwidth", False, 50 + 4 * 400),
        ("crossbar.reply_bandwidth", True, 50 + 4 * 400),
        ("l2.bandwidth", False, 50 + 4 * 400),
        ("l2.bandwidth", True, 50 + 4 * 400),
    ],
)
def test_a_load_has_its_sectors_when_they_have_passed(key, queues, time_ns):
    """As above, for four sectors of the L2; through queues, each of them has a request."""
    slow = machine(**{key: "0.08 GB/s", "crossbar.input_queued": queues})
    assert time_of(slow, [store((0, 15)), load((0, 15), critical_path_cycles=3999)]) == (4000 + time_ns) * NS


def test_every_slice_has_its_own_port():
    """Entries 0 and 1 lie in different slices of two. The last of four sectors passes 120 ns after the first."""
    slow = machine(l2__bandwidth=SLOW, l2__slices=2, l2__ways=16)
    assert time_of(slow, [store((0, 15)), store((1, 15))]) == (4 + 220) * NS
    assert time_of(slow, [store((0, 15)), store((0, 15))]) == (160 + 170) * NS


def test_consecutive_lines_lie_in_one_slice():
    """Two slices, interleaved by 256 B: entries 0 and 1 lie in one, 2 and 3 in the other.

    The second line's sectors wait 160 ns for those of the first, if both lie in one slice.
    """
    slow = machine(l2__bandwidth=SLOW, l2__slices=2, l2__ways=16, l2__interleave_granularity="256 B")
    for first, second in ((0, 1), (2, 3), (4, 5)):
        assert time_of(slow, [store((first, 15)), store((second, 15))]) == (160 + 170) * NS
    for first, second in ((0, 2), (1, 2), (4, 6)):
        assert time_of(slow, [store((first, 15)), store((second, 15))]) == (4 + 220) * NS


def test_a_polynomial_hash_spreads_strides_evenly():
    """Of four slices, polynomial x^2 + x + 1: entries of one group lie as numbered; of the groups 1 to 4, x^2 = x + 1
    moves slice 0 to 3, x^3 = x^2 + x = 1 to 1, both to 2, x^4 = x to 2. Stores to one slice wait 160 ns."""
    slow = machine(l2__bandwidth=SLOW, l2__slices=4, l2__ways=8, l2__slice_hash="ipoly", dram__channels=4)
    shared = {(0, 3): False, (3, 4): True, (1, 8): True, (2, 12): True, (2, 16): True, (12, 16): True, (4, 8): False}
    for (first, second), together in shared.items():
        stores = [store((first, 15)), store((second, 15))]
        assert time_of(slow, stores) == ((160 + 170) if together else (4 + 220)) * NS


def test_a_polynomial_hash_takes_channels_first():
    """Two slices of each of two channels: entries 0 to 3 lie in slices 0, 2, 1, 3; 4, of the next group, in 0 ^ 3."""
    slow = machine(l2__bandwidth=SLOW, l2__slices=4, l2__ways=8, l2__slice_hash="ipoly", dram__channels=2)
    for entry, together in ((1, False), (2, False), (3, True)):
        stores = [store((entry, 15)), store((4, 15))]
        assert time_of(slow, stores) == ((160 + 170) if together else (4 + 220)) * NS
    assert time_of(slow, [store((2, 15)), store((8, 15))]) == (160 + 170) * NS  # 8, of group 2, is in slice 0 ^ 1
    assert time_of(slow, [store((1, 15)), store((8, 15))]) == (4 + 220) * NS


def test_loads_that_bypass_the_l1_use_the_same_ports():
    slow = machine(crossbar__request_bandwidth=SLOW)
    assert time_of(slow, [load(0, use_distance=0, **PAST_L1), store(1)]) == 201 * NS
    assert time_of(slow, [*[load(0, use_distance=0, **PAST_L1)] * 6, store(1)]) == (240 + 100) * NS


def test_a_port_never_exceeds_its_bandwidth():
    """Requests of 40 ns each: the n-th waits for those before it."""
    slow = machine(crossbar__request_bandwidth=SLOW, l1__mshrs=64)
    for n in (2, 5, 20):
        assert time_of(slow, [store(*range(n))]) == ((n - 1) * 40 + 100) * NS


def test_an_idle_port_delays_no_request():
    slow = machine(crossbar__request_bandwidth=SLOW)
    assert time_of(slow, [store(0), store(1, critical_path_cycles=200)]) == (201 + 100) * NS


QUEUES = {"crossbar__input_queued": True, "l2__slices": 2, "l2__ways": 16}


def of_two_sms(machine_of_two, *warps):
    launch = Launch([grid(*([warp] for warp in warps))])
    return run_launches(machine_of_two, [launch])[0]["now_ps"]


def test_input_queues_have_head_of_line_blocking():
    """A slice takes a sector each 40 ns. Both SMs send to entry 0's slice at 1; the second one starts at 40. Its
    store of entry 1, whose slice idles, leaves at 41; with ports at 2."""
    two = {"sm__count": 2, "sm__blocks": 1, "l2__bandwidth": SLOW}
    warps = [store(0)], [store(0, 1)]
    assert of_two_sms(machine(**two, **QUEUES), *warps) == (41 + 100) * NS
    assert of_two_sms(machine(**two, **QUEUES), [store(0)], [store(0)]) == (40 + 100) * NS
    assert of_two_sms(machine(**two, **QUEUES), [store(0)], [store(1)]) == (1 + 100) * NS
    assert of_two_sms(machine(**two, l2__slices=2, l2__ways=16), *warps) == (2 + 100) * NS


def test_each_sector_of_a_load_is_a_request():
    """Four sectors leave the queue at 301 and each 40 ns after; the last one's request is 120 ns behind the first."""
    slow = machine(**{**QUEUES, "crossbar__request_bandwidth": SLOW})
    assert time_of(slow, [store(0), load(0, critical_path_cycles=300)]) == (301 + 100) * NS
    behind = [store((0, 15), 1), load((0, 15), use_distance=0, critical_path_cycles=300), load(1)]
    assert time_of(slow, behind) == (301 + 160 + 100) * NS


def test_replies_serialize_at_their_slice_and_at_their_sm():
    """Four sectors requested at 301 are at the slice at 351, in the slot of 40 ns from 320 on; the last one leaves
    three times 40 ns later, as it would through a port. Of sectors of two slices, there at 651 and 652, the second one
    leaves in the SM's next slot, which begins at 680."""
    stored = store((0, 15))
    slice_slow = machine(**{**QUEUES, "l2__bandwidth": SLOW})
    assert time_of(slice_slow, [stored, load(0, critical_path_cycles=600)]) == (601 + 100) * NS
    sm_slow = machine(**{**QUEUES, "crossbar__reply_bandwidth": SLOW})
    assert time_of(sm_slow, [stored, load((0, 15), critical_path_cycles=300)]) == (351 + 120 + 50) * NS
    assert time_of(sm_slow, [store(0, 1), load(0, 1, critical_path_cycles=600)]) == (680 + 50) * NS


def test_competing_sms_alternate_at_a_slice():
    """A slice takes a sector each 40 ns. The first SM's two sectors leave at 1 and 40, the second one's at 80 and 160,
    where it would else follow at 120; the ways there and back take 50 each. Replies are 40 apart, the last one not
    before its request. A third SM's sector takes the slot at 120, and its reply the one from 240 on. An SM does not
    compete with itself."""
    interleaved = {**QUEUES, "sm__blocks": 1, "l2__bandwidth": SLOW, "crossbar__interleave_requesters": True}
    two, three = ({**interleaved, "sm__count": count} for count in (2, 3))
    both = [store((0, 3))], [store((0, 3))]
    assert of_two_sms(machine(**two), *both) == (160 + 50 + 50) * NS
    assert of_two_sms(machine(**{**two, "crossbar__interleave_requesters": False}), *both) == (120 + 50 + 50) * NS
    alone = [store((0, 15)), store(1), store((0, 15))]
    assert of_two_sms(machine(**two), alone) == of_two_sms(
        machine(**{**two, "crossbar__interleave_requesters": False}), alone
    )
    assert of_two_sms(machine(**three), *both, [store(0)]) == (240 + 50) * NS


@pytest.mark.parametrize("bandwidth", [0.8, 8])
def test_a_faster_request_port_does_not_delay_a_request(bandwidth):
    """A slice takes a sector each 40 ns: three of a store leave at 1, 40 and 80. With request slots of 20 ns the store
    once counted as sent at 80 - 2 * 20, with slots of 2 ns at 80 - 2 * 2; now at 1: an idle slice takes them so."""
    slow = machine(**{**QUEUES, "l2__bandwidth": SLOW, "crossbar__request_bandwidth": f"{2 * bandwidth} GB/s"})
    assert time_of(slow, [store((0, 7))]) == (1 + 100 + 80) * NS


def test_replies_of_one_slice_to_two_sms_serialize():
    """One SM's line comes from device memory at 151 and leaves in the slot from 120 on. The other SM's, requested at
    102, is at the slice at 152: alone it leaves then; now that slot is taken, and the next one begins at 160."""
    slow = machine(**{**QUEUES, "sm__count": 2, "sm__blocks": 1, "l2__bandwidth": SLOW, "l2__slices": 1})
    hit = [store(0), load(0, critical_path_cycles=101)]
    assert of_two_sms(slow, [store(1)], hit) == (152 + 50) * NS
    assert of_two_sms(slow, [load(1)], hit) == (160 + 50) * NS


def test_random_requests_reach_the_input_queued_throughput_of_karol():
    """IEEE Trans. Communications 35 (1987): the utilization of an output solves 80 / 64 = u + u^2 / (2 - 2 u): 0.649.

    The time is that of the longer of two runs less that of the shorter, without their ends.
    """
    wide = machine(
        crossbar__input_queued=True, sm__count=80, sm__blocks=1, l1__mshrs=512, l2__slices=64, dram__channels=64,
        l2__size="32 MiB", l2__ways=32,
    )  # fmt: skip
    random_entries = np.random.default_rng(1).integers(0, 65536, (80, 60, 32))

    def duration(ops: int) -> int:
        blocks = [[[store(*map(int, row)) for row in sm[:ops]]] for sm in random_entries]
        count = run_launches(wide, [Launch([grid(*blocks)])], regions=((0, 65536, 0, 4),))[0]
        return int(count["now_ps"])

    requests = 80 * 40 * 32
    load_fraction = requests / 64 / ((duration(60) - duration(20)) / NS)
    assert load_fraction == pytest.approx(0.649, rel=0.03)
