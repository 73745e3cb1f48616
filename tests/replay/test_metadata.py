"""Metadata lookups and fills: times computed by hand, on `simple` device memory."""

from fractions import Fraction

import numpy as np
import pytest

from buddysim.machine import Machine
from buddysim.replay.engine.event_loop import ReplayEngine
from buddysim.replay.parameters import engine_numbers
from buddysim.replay.schemes import REGISTRY
from tests.reference.replay.primitives.ref_port import RefPortBuckets
from tests.replay.bare import PLAIN, run_warps, tiny_machine

P100 = Machine.load("p100-nvlink2").with_overrides({**PLAIN, "dram.model": "simple"})
CYCLE = 769  # ps: also one line through an L1
BURST = 2286
L2 = P100.ps(P100.l2.load_to_use)
DEVICE = P100.ps(P100.dram.load_to_use)
FETCH = DEVICE - L2  # from a slice to device memory and back
CODEC = P100.ps(P100.compression.latency)


def loads(*entries, mask=1):
    """Return an instruction that loads one sector, or those of a mask, of each entry."""
    return 0, [(entry, mask, 0) for entry in entries]


def run(machine, warp, device_sectors=2, size=4, **options):
    """Replay one warp under `buddy`, with entries of a size class and a number of device sectors."""
    return run_warps(
        machine, [warp], "buddy", regions=[(0, 4096, 1, device_sectors)], state=[size * 17] * 4096, **options
    )[0]


def lookups(count):
    return [count["scheme"][f"metadata.{outcome}"] for outcome in ("hits", "mshr_merges", "misses")]


def misspeculated_sectors(count):
    return count["scheme"]["metadata.misspeculated_bytes"] // 32


@pytest.mark.parametrize(
    ("pending", "last"),
    [
        (
            "speculate",
            CYCLE + DEVICE + BURST + CODEC,
        ),  # the second line speculates too, and enters the L1 a cycle later
        ("wait", FETCH + DEVICE + BURST + CODEC),  # it waits for the metadata that the first one fetches
    ],
)
def test_a_lookup_whose_line_is_pending_speculates_or_waits(pending, last):
    machine = P100.with_overrides({"metadata_cache.on_pending_line": pending})
    count = run(machine, [loads(0, 1)])
    assert lookups(count) == [0, 1, 1]
    assert count["scheme"]["metadata.speculative_fills"] == (2 if pending == "speculate" else 1)
    assert count["now_ps"] == CYCLE + last


def test_without_overlap_nothing_is_fetched_before_the_size_is_known():
    count = run(P100.with_overrides({"metadata_cache.speculative_fetch": False}), [loads(0, 1)])
    assert (lookups(count), count["scheme"]["metadata.speculative_fills"]) == ([0, 1, 1], 0)
    assert count["now_ps"] == CYCLE + FETCH + DEVICE + BURST + CODEC


@pytest.mark.parametrize(("early_ps", "expected"), [(0, [1, 0, 1]), (1, [0, 1, 1])])
def test_a_line_is_on_its_way_until_it_is_there_to_the_picosecond(early_ps, expected):
    """The second lookup is 300 cycles after the first."""
    machine = P100.with_overrides({"dram.load_to_use": f"{L2 + 300 * CYCLE + early_ps} ps"})
    assert lookups(run(machine, [loads(0), loads(1)], critical_path_cycles=300, use=False)) == expected


def test_a_hit_moves_what_is_needed_when_the_line_is_there():
    machine = P100.with_overrides({"metadata_cache.hit_latency": "20 ns"})
    first, both = (run(machine, [loads(0), loads(1)][:n], size=3) for n in (1, 2))
    assert lookups(both) == [1, 0, 1]
    assert both["now_ps"] - first["now_ps"] == 20_000 + DEVICE + CODEC
    assert (misspeculated_sectors(first), misspeculated_sectors(both)) == (1, 1)


def test_a_speculative_fetch_begins_when_the_lookup_has_missed():
    machine = P100.with_overrides({"metadata_cache.hit_latency": "20 ns"})
    assert run(machine, [loads(0)])["now_ps"] == CYCLE + 20_000 + DEVICE + BURST + CODEC


@pytest.mark.parametrize(
    ("size", "device_sectors", "mask", "wasted", "last"),
    [
        (0, 3, 1, 3, DEVICE),  # a zero entry: the metadata say all
        (3, 3, 1, 2, DEVICE),  # one sector of three: the first to come
        (4, 3, 1, 1, DEVICE + BURST),
        (6, 3, 1, 0, DEVICE + 2 * BURST),
        (0, 0, 1, 1, DEVICE),  # 16x: the sector with its 8 B
        (3, 4, 8, 1, DEVICE + FETCH),  # not bypassed: the last requested sector, the first one needed
    ],
)
def test_a_fill_does_not_wait_for_misspeculated_sectors(size, device_sectors, mask, wasted, last):
    machine = P100.with_overrides({"buddy.bypass_1x": False})
    count = run(machine, [loads(0, mask=mask)], device_sectors, size)
    assert (count["scheme"]["metadata.speculative_fills"], count["scheme"]["metadata.misspeculated_fills"]) == (
        1,
        wasted > 0,
    )
    assert misspeculated_sectors(count) == wasted
    assert count["now_ps"] == CYCLE + last + CODEC


def channel_of_entries():
    """Return the pseudo-channel of each of 4,096 entries, and that of its metadata."""
    scheme = REGISTRY.find("buddy")()
    scheme.configure(P100, 4096, None)
    engine = ReplayEngine(
        engine_numbers(P100, Fraction(1)),
        np.array([[0, 4096, 1, 4]]),
        np.zeros(4096, np.uint8),
        scheme,
        P100.policies(),
    )
    locations = [engine.locations([entry], False)[0] for entry in range(4096)]
    return [(line["bank"] // P100.dram.banks, line["own_short"] // P100.dram.banks) for line in locations]


@pytest.mark.parametrize("cancel", [False, True])
def test_what_has_not_begun_when_the_metadata_are_there_is_cancelled(cancel):
    """A speculative fetch of four sectors, two of them needed, waits for `ahead` entries of its channel."""
    machine = P100.with_overrides({"metadata_cache.cancel_misspeculated": cancel, "l1.enabled": False})
    numbers, channels = engine_numbers(machine, Fraction(1)), channel_of_entries()
    entry = next(entry for entry in range(64) if channels[entry][0] != channels[entry][1])
    others = [other for other in range(64, 4096) if channels[other][0] == channels[entry][0]]
    outcomes = set()
    for ahead in range(12, 40):
        count, _ = run_warps(
            machine,
            [[loads(*others[:ahead], entry, mask=15)]],
            "buddy",
            regions=[(0, 64, 1, 4), (64, 4096, 0, 4)],
            state=[0x44] * 4096,
        )
        slice_port, bus, wasted = RefPortBuckets(), RefPortBuckets(), 0
        for line in range(ahead + 1):
            at = slice_port.request(CYCLE * (1 + line) + L2 // 2, 4 * numbers["slice_cost"])
            at += numbers["dram_before_ps"]
            bus.request(at, (4 if line < ahead else 2) * (numbers["dram_burst_ps"] << 10))
        for _ in range(2):
            start = bus.request(at, (numbers["dram_burst_ps"] << 10))
            wasted += not cancel or start - at < FETCH
            if cancel and start - at >= FETCH:
                break
        assert (count["scheme"]["metadata.misspeculated_fills"], misspeculated_sectors(count)) == (1, wasted)
        assert count["scheme"]["metadata.cancelled_bytes"] // 32 == 2 - wasted
        assert count["device"][1] == wasted
        outcomes.add(wasted)
    assert outcomes >= ({0, 2} if cancel else {2})


def port_start_times(arrivals, interval_ps):
    """Return the starts of lookups at one slice's port."""
    port = RefPortBuckets()
    return [port.request(t, 1024 * interval_ps) for t in arrivals]


@pytest.mark.parametrize("interval_ps", [CYCLE, 2 * CYCLE, 50 * CYCLE])
def test_a_slice_looks_one_entry_up_per_interval(interval_ps):
    """32 lines of a page with valid metadata arrive one per cycle; the last lookup decides the end."""
    machine = P100.with_overrides({"metadata_cache.lookup_interval": f"{interval_ps} ps"})
    warp = [loads(0), loads(*range(1, 33))]
    first, both = (run(machine, warp[:n], size=0) for n in (1, 2))
    assert lookups(both) == [32, 0, 1]
    arrivals = [first["now_ps"] + i * CYCLE + L2 // 2 for i in range(32)]
    known = port_start_times([CYCLE + L2 // 2, *arrivals], interval_ps)[-1]
    assert (interval_ps == CYCLE) == (known == arrivals[-1])
    assert both["now_ps"] == known + CODEC + L2 - L2 // 2


def test_every_slice_has_a_port_of_its_own():
    """Two lookups in one slice wait for each other; page 0 is paired with pages 1 to 15."""
    waits = {}
    for slices in (1, 2):
        machine = tiny_machine(
            metadata_cache__lookup_interval="5 us", metadata_cache__slices=slices, dram__model="simple"
        )
        pairs = [run(machine, [loads(0, 64 * page)], size=0)["now_ps"] for page in range(1, 16)]
        waits[slices] = {duration > 5_000_000 for duration in pairs}
    assert waits == {1: {True}, 2: {True, False}}


def test_write_backs_pass_the_same_port():
    machine = tiny_machine(metadata_cache__lookup_interval="5 us", metadata_cache__slices=1, dram__model="simple")
    stores = [(1, [(entry, 15, 15)]) for entry in range(200)]
    count = run(machine, [*stores, loads(3000)], size=0)
    assert count["writebacks"] > 100
    assert count["now_ps"] > count["scheme"]["metadata.accesses"] * 5_000_000 - 5_000_000


def test_perfect_metadata_pass_no_port():
    machine = P100.with_overrides({"metadata_cache.lookup_interval": "5 us", "metadata_cache.perfect": True})
    count = run(machine, [loads(*range(32))], size=0)
    assert count["now_ps"] == CYCLE + 31 * CYCLE + L2 + CODEC
    assert count["scheme"]["metadata.accesses"] == 0


def test_the_metadata_of_a_changed_entry_are_written_when_their_line_leaves():
    """Pages 0 to 63 alternate in two sets of one way; each evicts a line that a write-back changed."""
    machine = tiny_machine(metadata_cache__slices=1, metadata_cache__ways=1, metadata_cache__size="64 B")
    stores = [(1, [(64 * page, 15, 15)]) for page in range(64)]
    for grown in (False, True):
        count, _ = run_warps(
            machine, [stores], "buddy", regions=[(0, 4096, 1, 2)], state=[0x43 if grown else 0x33] * 4096
        )
        written = count["device"][5]
        assert written == (count["scheme"]["metadata.misses"] - 2 if grown else 0)
