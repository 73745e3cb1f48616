"""Components of the engine agree with their reference models, access for access."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.probes.engine_parts import BusReservations, EventOrder, LonePort, LruTags
from tests.reference.replay.memory_path import RefMemory
from tests.reference.replay.primitives.ref_cache import RefLruTags
from tests.reference.replay.primitives.ref_port import RefPortBuckets
from tests.reference.replay.primitives.ref_reservation_table import RefBusReservations
from tests.replay.bare import all_numbers, run_warps, tiny_machine

ENTRIES = 512
ROUNDS = [(buckets << 16) for buckets in (1, 511, 512, 513, 1024)]  # a port's buckets come round after 512
TRAFFIC = ("demand", "overfetch", "read_modify_write", "writeback", "metadata_read", "metadata_write")


@given(
    shape=st.tuples(st.integers(1, 9), st.integers(1, 9) | st.sampled_from([16, 24, 70])),
    accesses=st.lists(st.tuples(st.integers(0, 200), st.integers(1, 15)), max_size=300),
)
def test_cache_equals_its_reference_model(shape, accesses):
    fast, naive = LruTags(*shape), RefLruTags(*shape)
    for tag, sectors in accesses:
        assert fast.access(tag, sectors) == naive.access(tag, sectors)


@pytest.mark.parametrize("ways", [1, 4, 6, 8, 15, 16, 17, 24, 64, 256, 1024])
def test_full_sets_forget_the_line_used_longest_ago(ways):
    fast, naive, draw = LruTags(1, ways), RefLruTags(1, ways), random.Random(ways)
    for _ in range(20 * ways + 1000):
        tag = draw.randrange(ways + ways // 4 + 1)
        assert fast.access(tag, 1) == naive.access(tag, 1)


@given(data=st.data(), n=st.integers(1, 400) | st.sampled_from([16, 17, 128, 16384]))
def test_events_come_by_time_then_number(data, n):
    fast, times = EventOrder(n), {}
    assert fast.first() is None
    for number, time in data.draw(
        st.lists(
            st.tuples(st.integers(0, n - 1), st.none() | st.integers(0, 9) | st.integers(0, 2**47 - 1)), max_size=200
        )
    ):
        fast.set(number, time)
        times[number] = time
        assert fast.first() == min(((t, i) for i, t in times.items() if t is not None), default=None)


@given(
    requests=st.lists(
        st.tuples(
            st.integers(0, 200_000) | st.sampled_from(ROUNDS),
            st.integers(0, 400_000) | st.sampled_from(ROUNDS) | st.integers(0, 2**28),
            st.integers(1, 2**22) | st.integers(1, 2**28),  # what costs nothing passes no port
        ),
        max_size=200,
    )
)
def test_port_equals_its_reference_model(requests):
    fast, naive, now = LonePort(), RefPortBuckets(), 0
    for passed, ahead, cost in requests:
        now += passed
        assert fast.request(now, now + ahead, cost) == naive.request(now + ahead, cost)
    assert fast.pushed == 0


@given(
    burst=st.integers(2, 5000),
    ccd=st.integers(1, 56),
    requests=st.lists(
        st.tuples(
            st.integers(0, 3) | st.integers(0, 40_000),
            st.integers(0, 30) | st.integers(0, 40_000) | st.integers(0, 1_000_000),
            st.integers(1, 4),
            st.integers(1, 40),
            st.booleans(),
        ),
        max_size=60,
    ),
    refresh=st.just((0, 0)) | st.tuples(st.integers(1, 2_000), st.integers(3_000, 60_000)),
    offset=st.just(0) | st.integers(0, 59_999),
)
def test_bus_reservations_equal_its_reference_model(burst, ccd, requests, refresh, offset):
    numbers = burst, ccd, refresh[0] * burst // 7, refresh[1] * burst // 7
    offset_ps = offset * burst // 7 % (numbers[3] or 1)
    fast = BusReservations(*numbers, refresh_offset_ps=offset_ps)
    naive, now = RefBusReservations(*numbers, offset_ps), 0
    for passed, ahead, bursts, times, releases in requests:
        now += passed * burst
        slot = now // burst + ahead
        for _ in range(times):
            taken = fast.reserve(now, slot, bursts)
            assert taken == naive.reserve(slot, bursts)
        if releases:
            fast.release(now, taken[0])
            naive.release(taken[0])
    assert fast.pushed == 0


@pytest.mark.parametrize("bursts", [1, 2, 4])
@pytest.mark.parametrize("reserved", [56, 63, 64, 65, 200])
def test_reserved_slots_that_were_not_searched_are_passed(reserved, bursts):
    """Where the 64 slots from the start have no free one, zeros of 0 must not be counted, which the sanitizers see."""
    fast, naive = BusReservations(2000, 1), RefBusReservations(2000, 1)
    for slot in range(8, 8 + reserved):
        assert fast.reserve(0, slot, 1) == naive.reserve(slot, 1) == (slot, slot)
    assert fast.reserve(0, 8, bursts) == naive.reserve(8, bursts) == (8 + reserved, 7 + reserved + bursts)


@st.composite
def lines(draw, kind):
    mask = draw(st.integers(1, 15))
    whole = mask & draw(st.integers(0, 15)) if kind == 1 else 0
    return draw(st.integers(0, ENTRIES - 1) | st.integers(0, 40)), mask, whole


@st.composite
def ops(draw):
    kind = draw(st.sampled_from([0, 0, 1, 1, 2]))
    return kind, draw(st.lists(lines(kind), min_size=1, max_size=4))


@pytest.mark.parametrize("scheme", ["ideal", "bandwidth-compression", "buddy", "pinned-host"])
@given(
    warp=st.lists(ops(), min_size=1, max_size=120),
    state=st.binary(min_size=ENTRIES, max_size=ENTRIES),  # one draw: lists of classes took most of the time
    device_sectors=st.lists(
        st.sampled_from([(0, 4), (1, 4), (1, 3), (1, 2), (1, 1), (1, 0), (2, 4)]), min_size=3, max_size=3
    ),
    overlap=st.booleans(),
    eight=st.booleans(),
    whole=st.booleans(),
    raw=st.sampled_from(["whole", "single"]),
    line=st.sampled_from(["32 B", "64 B"]),
    pending=st.sampled_from(["speculate", "wait"]),
)
@settings(max_examples=60, deadline=None)
def test_memory_system_equals_its_reference_model(
    scheme, warp, state, device_sectors, overlap, eight, whole, raw, line, pending
):
    machine = tiny_machine(
        metadata_cache__speculative_fetch=overlap,
        metadata_cache__on_pending_line=pending,
        buddy__eight_byte_class=eight,
        buddy__raw_sectors=raw,
        compression__fetch_whole_raw_entry=whole,
        metadata_cache__line=line,
    )
    bounds = [0, 130, 300, ENTRIES]
    regions = [(bounds[i], bounds[i + 1], *device_sectors[i]) for i in range(3)]
    bytes_of_state = [classes & 0x77 for classes in state]  # the class now, and after it
    fast, final = run_warps(machine, [warp], scheme, regions=regions, state=bytes_of_state)
    naive = RefMemory(all_numbers(machine), regions, bytes_of_state, scheme)
    for kind, touched in warp:
        for entry, mask, whole_mask in touched:
            sectors = {s for s in range(4) if mask >> s & 1}
            if kind == 0:
                naive.load(entry, sectors)
            elif kind == 1:
                naive.store(entry, sectors, {s for s in range(4) if whole_mask >> s & 1})
            else:
                naive.atomic(entry, sectors)
    same = "load_sectors store_sectors l2_read_misses fills fill_sectors writebacks writeback_sectors"
    assert {key: fast[key] for key in same.split()} == {key: naive.count[key] for key in same.split()}
    assert fast["l1_hits"] + fast["l1_mshr_merges"] == naive.count["l1_found"]
    assert fast["l2_read_hits"] + fast["l2_read_mshr_merges"] == naive.count["l2_found"]
    own = fast["scheme"]
    assert own.get("sizes.class_increases", 0) == naive.count["class_increases"]
    assert own.get("sizes.class_decreases", 0) == naive.count["class_decreases"]
    if scheme == "buddy":
        assert own["metadata.accesses"] == naive.count["metadata_accesses"]
        assert own["metadata.hits"] + own["metadata.mshr_merges"] == naive.count["metadata_found"]
        assert own["buddy.fills"] == naive.count["buddy_fills"]
        assert own["buddy.writebacks"] == naive.count["buddy_writebacks"]
    moved = dict(zip(TRAFFIC, fast["device"], strict=False))
    speculation = {
        "speculative_fills": own.get("metadata.speculative_fills", 0),
        "misspeculated_fills": own.get("metadata.misspeculated_fills", 0),
        "misspeculated_sectors": own.get("metadata.misspeculated_bytes", 0) // 32,
    }
    if pending == "speculate":  # which lookups find a pending line the reference, without time, can't know
        speculation = {key: min(speculation[key], naive.count[key]) for key in speculation}
        moved["overfetch"] = min(moved["overfetch"], naive.count["device.overfetch"])
    assert speculation == {key: naive.count[key] for key in speculation}
    for kind, sectors in moved.items():
        assert sectors == naive.count[f"device.{kind}"], kind
    assert fast["link_read"][:3] == [naive.count[f"link.{k}"] for k in ("demand", "overfetch", "read_modify_write")]
    assert fast["link_write"][3] == naive.count["link.writeback"]
    assert final == naive.state
