"""Laws of every trace: traffic is conserved, schemes agree where they must, and no roofline is exceeded."""

import random
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.base.counter import law_holds
from buddysim.replay.counter_definitions import OF_PARTS, PARTS
from buddysim.replay.parameters import engine_numbers
from buddysim.replay.primitives.kinds import Traffic
from buddysim.replay.schemes import REGISTRY
from tests.replay.bare import Op, run_warps, tiny_machine

ENTRIES = 512
SCHEMES = ("ideal", "bandwidth-compression", "buddy", "pinned-host", "unified-memory")


def warps_of(seed: int, kinds: str, counts: range, lengths: range) -> list[list[Op]]:
    """Return warps of accesses of 1 to 6 lines of few, some or all entries.

    They follow from a seed: sampled one by one they take ten times as long as the run.

    Parameters
    ----------
    seed : of all choices
    kinds : `l`oads, `w`hole stores, `p`artial stores and `a`tomics, one sampled for each access
    counts, lengths : possible numbers of warps, and of accesses of each
    """
    rng = random.Random(seed)
    entries = rng.choice((8, 64, ENTRIES))

    def access() -> Op:
        kind = rng.choice(kinds)
        masks = [(rng.randrange(entries), rng.randint(1, 15)) for _ in range(rng.randint(1, 6))]
        return "lwa".find(kind.replace("p", "w")), [(entry, mask, mask if kind == "w" else 0) for entry, mask in masks]

    return [[access() for _ in range(rng.choice(lengths))] for _ in range(rng.choice(counts))]


seeds = st.integers(0, 2**32 - 1)
warps = seeds.map(lambda seed: warps_of(seed, "lwpa", range(1, 13), range(41)))
#: Of each entry its size class and the class after stores, 0 to 7 both: one draw of bytes, not one for each entry.
states = st.binary(min_size=ENTRIES, max_size=ENTRIES).map(lambda data: [byte & 0x77 for byte in data])
device_sectors = st.sampled_from([4, 3, 2, 1, 0])


def counters_of_parts(machine, count):
    """Return the counters that parts of the machine declare, of a bare run."""
    numbers = engine_numbers(machine, Fraction(1))
    counted = {**count, "numbers": numbers, "dirty_sectors_at_end": count["dirty_left"]}
    return {name: counter.value(counted) for name, counter in OF_PARTS.items()}


@given(
    warps=warps,
    state=states,
    device_sectors=device_sectors,
    scheme=st.sampled_from(SCHEMES),
    banked=st.sampled_from(["banked", "simple"]),
)
@settings(deadline=None, max_examples=80)
def test_sectors_and_bytes_are_conserved(warps, state, device_sectors, scheme, banked):
    machine = tiny_machine(dram__model=banked, um__page_size="4 KiB", um__va_block_size="16 KiB")
    regions = [(0, 200, 1, device_sectors), (200, 300, 2, 4), (300, ENTRIES, 0, 4)]
    count, _ = run_warps(machine, warps, scheme, regions=regions, state=state)
    counters = counters_of_parts(machine, count) | count["scheme"]
    for law in (*(law for part in PARTS for law in getattr(part, "LAWS", ())), *REGISTRY.find(scheme).LAWS):
        assert law_holds(law, counters), law
    assert sum(count["device"]) == sum(count["dram_bursts"]) + sum(count["dram_queued_bursts"])
    assert sum(count["link_read"]) == count["link_read_total_bytes"]
    assert sum(count["link_write"]) == count["link_write_total_bytes"]
    assert count["memory_instructions"] == sum(map(len, warps))


@given(
    warps=warps,
    state=states,
    device_sectors=device_sectors,
    scheme=st.sampled_from(SCHEMES),
    banked=st.sampled_from(["banked", "simple"]),
)
@settings(deadline=None, max_examples=60)
def test_no_resource_carries_more_than_its_bandwidth(warps, state, device_sectors, scheme, banked):
    machine = tiny_machine(dram__model=banked, link__bandwidth="1 GB/s")
    numbers = engine_numbers(machine, Fraction(1))
    count, _ = run_warps(machine, warps, scheme, regions=[(0, ENTRIES, 1, device_sectors)], state=state)
    # What is only posted (the last write-backs) may still be in flight when the last warp ends.
    shared = max(0, sum(count["device"][:3])) // numbers["dram_pseudo"]
    posted = (max(count["dram_bursts"]) - shared) * numbers["dram_burst_ps"]
    reads = sum(count["device"][:3]) + count["device"][Traffic.SCHEME_TRAFFIC]  # metadata lines of `buddy`
    assert count["now_ps"] >= reads * numbers["dram_burst_ps"] // numbers["dram_pseudo"] - max(0, posted)
    assert count["now_ps"] >= sum(count["link_read"][:2]) * 10**12 // numbers["link_bytes_per_s"]
    assert count["now_ps"] >= count["line_accesses"] // 2 * numbers["l1_line_ps"] // machine.sm.count


@given(warps=warps)
@settings(deadline=None, max_examples=40)
def test_incompressible_entries_at_1x_move_what_bandwidth_moves_and_metadata(warps):
    machine = tiny_machine(buddy__bypass_1x=False)
    runs = {
        s: run_warps(machine, warps, s, regions=[(0, ENTRIES, 1, 4)])[0] for s in ("bandwidth-compression", "buddy")
    }
    order_free = ("load_sectors", "store_sectors")
    assert all(runs["buddy"][key] == runs["bandwidth-compression"][key] for key in order_free)
    assert sum(runs["buddy"]["link_read"]) == sum(runs["buddy"]["link_write"]) == 0
    if len(warps) == 1:  # with several warps the order of accesses, and so what hits, may differ
        assert runs["buddy"]["device"][:4] == runs["bandwidth-compression"]["device"][:4]
    assert not any(runs["bandwidth-compression"]["device"][4:])


@given(warps=warps, device_sectors=device_sectors)
@settings(deadline=None, max_examples=40)
def test_zero_entries_move_no_data_without_overlap(warps, device_sectors):
    machine = tiny_machine(buddy__bypass_1x=False, metadata_cache__speculative_fetch=False)
    count, _ = run_warps(machine, warps, "buddy", regions=[(0, ENTRIES, 1, device_sectors)], state=[0] * ENTRIES)
    assert sum(count["device"][:4]) == 0
    assert sum(count["link_read"]) == sum(count["link_write"]) == 0


@given(warps=warps, state=states, device_sectors=device_sectors, banked=st.sampled_from(["banked", "simple"]))
@settings(deadline=None, max_examples=60)
def test_entries_that_fit_and_free_metadata_make_buddy_bandwidth(warps, state, device_sectors, banked):
    largest = {4: 7, 3: 6, 2: 4, 1: 3, 0: 1}[device_sectors]
    fitting = [min(s & 7, largest) | min(s >> 4, largest) << 4 for s in state]
    machine = tiny_machine(buddy__bypass_1x=False, metadata_cache__perfect=True, dram__model=banked)
    runs = [
        run_warps(machine, warps, scheme, regions=[(0, ENTRIES, 1, device_sectors)], state=fitting)
        for scheme in ("bandwidth-compression", "buddy")
    ]
    own = [count.pop("scheme") for count, _ in runs]
    assert own[0].items() <= own[1].items()  # what both schemes count: changes of size class
    assert runs[0] == runs[1]


@given(warps=warps, state=states, device_sectors=device_sectors, scheme=st.sampled_from(SCHEMES))
@settings(deadline=None, max_examples=20)
def test_the_same_input_gives_the_same_output(warps, state, device_sectors, scheme):
    machine = tiny_machine()
    first = run_warps(machine, warps, scheme, regions=[(0, ENTRIES, 1, device_sectors)], state=state)
    assert first == run_warps(machine, warps, scheme, regions=[(0, ENTRIES, 1, device_sectors)], state=state)


FASTER = (
    ("link__bandwidth", "20 GB/s", "200 GB/s"),
    ("metadata_cache__size", "256 B", "4 KiB"),
    ("dram__load_to_use", "400 ns", "280 ns"),
    ("link__load_to_use", "900 ns", "430 ns"),
    ("l2__size", "8 KiB", "32 KiB"),
    ("dram__pseudo_channel_bandwidth", "7 GB/s", "14 GB/s"),
)


many_loads = seeds.map(lambda seed: warps_of(seed, "l", range(8, 13), range(20, 41)))


@given(warps=many_loads, change=st.sampled_from(FASTER))
@settings(deadline=None, max_examples=60)
def test_a_faster_part_does_not_slow_the_run(warps, change):
    """Times agree within 3 % and a microsecond, as another order of accesses may hit differently."""
    key, slow, fast = change
    state = [(0x33, 0x44, 0x66, 0x77)[entry * 7 // 3 % 4] for entry in range(ENTRIES)]
    times = [
        run_warps(tiny_machine(**{key: value}), warps, "buddy", regions=[(0, ENTRIES, 1, 2)], state=state)[0]["now_ps"]
        for value in (slow, fast)
    ]
    assert times[1] <= times[0] * 1.03 + 1_000_000
