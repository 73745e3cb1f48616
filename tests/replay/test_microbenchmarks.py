"""Microbenchmarks whose times can be computed by hand from the machine file."""

import pytest

from buddysim.machine import Machine
from tests.replay.bare import PLAIN, run_warps, tiny_machine

P100 = Machine.load("p100-nvlink2").with_overrides({**PLAIN, "dram.timing.tREFI": "0 ns"})
CYCLE = 769
FAR = 64 * 512  # entries from one row of every channel to the next row of the same bank, at the least


def chase(machine, hops, entries, scheme="ideal", *, regions=None, state=None):
    """Return the time of each further hop of a chain of dependent loads (ps), from two lengths."""
    times = []
    for n in (hops, 2 * hops):
        warp = [(0, [(entries[i % len(entries)], 1, 0)]) for i in range(n)]
        regions_ = regions or [(0, max(entries) + 1, 0, 4)]
        count, _ = run_warps(machine, [warp], scheme, regions=regions_, state=state)
        times.append(count["now_ps"])
    return (times[1] - times[0]) / hops


def test_l1_hit():
    assert chase(P100, 64, list(range(8))) == P100.ps(P100.l1.load_to_use)


def test_l2_hit():
    machine = P100.with_overrides({"l1.enabled": False})
    assert chase(machine, 2000, list(range(1000))) == P100.ps(P100.l2.load_to_use)


@pytest.mark.parametrize("machine_name", Machine.presets())
def test_idle_latencies_of_every_machine(machine_name):
    machine = Machine.load(machine_name).with_overrides(
        {
            "dram.timing.tREFI": "0 ns", "dram.model": "simple", "kernel.launch_latency": "0 ns",
            "l1.enabled": True, "l2.fetch_granularity": "32 B", "l2.partition_latency": "0 ns",
        }
    )  # fmt: skip
    assert chase(machine, 64, [0, 1, 2, 3]) == machine.ps(machine.l1.load_to_use)
    no_l1 = machine.with_overrides({"l1.enabled": False})
    hits = no_l1.with_overrides(
        {"l2.partitions": 1}
    )  # a second lap from another SM would read the others' lines from afar
    assert chase(hits, 500, list(range(500))) == machine.ps(machine.l2.load_to_use)
    cold = [7 * i for i in range(400)]
    assert chase(machine, 200, cold) == machine.ps(machine.dram.load_to_use)
    assert chase(machine, 200, cold, "pinned-host") == pytest.approx(machine.ps(machine.link.load_to_use), abs=1)


def test_dram_closed_bank_row_hit_and_conflict():
    timing = P100.dram.timing
    closed = P100.ps(P100.dram.load_to_use)
    # One load to a closed bank, then the sectors of its row, then another row of the same bank.
    one, _ = run_warps(P100, [[(0, [(0, 1, 0)])]], regions=[(0, 64, 0, 4)])
    assert one["now_ps"] == CYCLE + closed
    two, _ = run_warps(P100, [[(0, [(0, 1, 0)]), (0, [(0, 2, 0)])]], regions=[(0, 64, 0, 4)])
    row_hit = two["now_ps"] - one["now_ps"]
    assert row_hit == closed - P100.ps(timing.tRCD)
    assert two["dram_row_hits"] != one["dram_row_hits"]


def test_simple_dram_streams_at_its_bandwidth():
    machine = P100.with_overrides({"dram.model": "simple", "l1.mshrs": 4096, "l2.mshrs": 4096})
    warps = [[(0, [(w * 64 + i, 15, 0)]) for i in range(64)] for w in range(1792)]
    count, _ = run_warps(machine, warps, regions=[(0, 1792 * 64, 0, 4)], use=False)
    peak = 64 * 32 / 2286e-12
    assert count["now_ps"] == pytest.approx(count["l2_read_misses"] * 32 / peak * 1e12, rel=0.03)


@pytest.mark.parametrize(
    ("kind", "lowest", "highest"), [("read", 0.85, 0.95), ("write", 0.85, 0.95), ("copy", 0.79, 0.87)]
)
def test_banked_dram_streams_at_the_fractions_of_a_controller(kind, lowest, highest):
    """Streams reach the fraction of the peak that real GPUs sustain (copies: DRAMsim3)."""
    n = 3584
    machine = Machine.load("p100-nvlink2")
    store = [(1, 15)]
    warps = []
    for w in range(n):
        ops = []
        for i in range(64):
            entry = i * n + w
            if kind != "write":
                ops.append((0, [(entry, 15, 0)]))
            if kind != "read":
                ops.append((store[0][0], [(entry + (n * 64 if kind == "copy" else 0), 15, 15)]))
        warps.append(ops)
    entries = n * 64 * (2 if kind == "copy" else 1)
    count, _ = run_warps(machine, warps, regions=[(0, entries, 0, 4)], warps_per_block=8)
    fraction = sum(count["dram_bursts"]) * 2286 / 64 / count["now_ps"]
    assert lowest <= fraction <= highest


def test_random_sectors_are_bound_by_row_activations():
    """With one burst of 32 B per row, a pseudo-channel is limited by its activations: tRRD or tFAW / 4."""
    machine = Machine.load("p100-nvlink2").with_overrides({"dram.timing.tREFI": "0 ns"})
    n, state = 3584, 12345
    warps = []
    for _ in range(n):
        ops = []
        for _ in range(4):
            lines = []
            for _ in range(16):
                state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
                lines.append((state >> 40, 1, 0))
            ops.append((0, lines))
        warps.append(ops)
    count, _ = run_warps(machine, warps, regions=[(0, 2**24, 0, 4)])
    timing = machine.dram.timing
    activation = max(machine.ps(timing.tRRD_S), machine.ps(timing.tFAW) // 4)
    limit = 2286 / activation
    fraction = sum(count["dram_bursts"]) * 2286 / 64 / count["now_ps"]
    assert 0.6 * limit <= fraction <= limit


def test_metadata_miss_costs_a_fetch_and_a_hit_nothing():
    """Without overlap, a miss delays the data by a device access; a hit in the same 8 KB page does not."""
    machine = P100.with_overrides({"metadata_cache.speculative_fetch": False, "dram.model": "simple"})
    regions = [(0, 64 * 512, 1, 2)]
    state = [0x44] * (64 * 512)
    decompress = machine.ps(machine.compression.latency)
    device = machine.ps(machine.dram.load_to_use)
    fetch = device - machine.ps(machine.l2.load_to_use)
    burst = 2286  # the entry's second sector
    misses = chase(machine, 200, [64 * i for i in range(400)], "buddy", regions=regions, state=state)
    assert misses == fetch + device + burst + decompress
    hits = chase(machine, 20, list(range(64)), "buddy", regions=regions, state=state)
    assert hits == device + burst + decompress


def test_overlap_hides_the_metadata_of_entries_that_fit():
    machine = P100.with_overrides({"dram.model": "simple"})
    regions, state = [(0, 64 * 512, 1, 2)], [0x44] * (64 * 512)
    pages = [64 * i for i in range(400)]
    hidden = chase(machine, 200, pages, "buddy", regions=regions, state=state)
    assert hidden == machine.ps(machine.dram.load_to_use) + 2286 + machine.ps(machine.compression.latency)


def test_buddy_sector_latency():
    """An entry that overflows waits for the link rather than device memory, and for the decompressor."""
    machine = P100.with_overrides({"dram.model": "simple", "metadata_cache.perfect": True})
    regions, state = [(0, 64 * 512, 1, 2)], [0x66] * (64 * 512)
    hop = chase(machine, 200, [64 * i for i in range(400)], "buddy", regions=regions, state=state)
    assert hop == pytest.approx(machine.ps(machine.link.load_to_use) + machine.ps(machine.compression.latency), abs=1)


@pytest.mark.parametrize("bandwidth", [50, 150, 200])
def test_link_bandwidth(bandwidth):
    """With entries of four sectors at a 4x target, three quarters of a stream cross the link."""
    machine = P100.with_overrides({"link.bandwidth": f"{bandwidth} GB/s"})
    n = 1792
    warps = [[(0, [(i * n + w, 15, 0)]) for i in range(16)] for w in range(n)]
    count, _ = run_warps(machine, warps, "buddy", regions=[(0, n * 16, 1, 1)])
    assert count["link_read_total_bytes"] == n * 16 * 96
    assert count["link_read_total_bytes"] / count["now_ps"] * 1e3 == pytest.approx(bandwidth, rel=0.06)


def test_strides_spread_over_the_channels():
    """With a stride of any power of two, every channel's traffic is within 40 % of the mean."""
    for shift in range(8):
        n = 1792
        warps = [[(0, [((i * n + w) << shift, 1, 0)]) for i in range(8)] for w in range(n)]
        count, _ = run_warps(P100, warps, regions=[(0, n * 8 << shift, 0, 4)])
        bursts = count["dram_bursts"]
        assert max(bursts) <= 1.4 * sum(bursts) / len(bursts), shift


def test_a_gap_takes_issue_slots_and_a_chain_takes_time():
    machine = tiny_machine(l1__enabled=True)
    times = [
        run_warps(machine, [[(0, [(0, 1, 0)])] * n], use=False, critical_path_cycles=11)[0]["now_ps"]
        for n in (1000, 2000)
    ]
    assert times[1] - times[0] == 1000 * 11 * CYCLE
    # 16 warps of 100 instructions between loads share two schedulers: 8 x 51 x 101 slots each.
    many = [[(0, [(0, 1, 0)])] * 51] * 16
    busy, _ = run_warps(
        tiny_machine(sm__count=1), many, use=False, gap_instructions=100, critical_path_cycles=101, warps_per_block=16
    )
    assert busy["now_ps"] == pytest.approx(8 * 51 * 101 * CYCLE, rel=0.02)


def test_a_busy_unit_holds_up_other_warps_but_not_the_one_whose_chain_knows_it():
    machine = tiny_machine(sm__count=1)
    options = {"use": False, "gap_instructions": 100, "critical_path_cycles": 130, "warps_per_block": 16}
    many = [[(0, [(0, 1, 0)])] * 51] * 16
    busy, _ = run_warps(machine, many, unit_busy_slots=60, **options)
    assert busy["now_ps"] == pytest.approx(8 * 51 * 161 * CYCLE, rel=0.02)
    assert busy["warp_instructions"] == 16 * 51 * 101
    assert busy["issue_busy_ps"] == 16 * 51 * 161 * CYCLE
    alone = [
        run_warps(machine, [many[0]], **{**options, "warps_per_block": 1, "unit_busy_slots": u})[0] for u in (0, 29)
    ]
    assert alone[0]["now_ps"] == alone[1]["now_ps"]


@pytest.mark.parametrize("blocking", [False, True])
def test_atomics_hold_their_warp_where_the_machine_says_so(blocking):
    machine = tiny_machine(sm__blocking_atomics=blocking)
    times = [
        run_warps(machine, [[(2, [(0, 1, 0)])] * n], use=False, critical_path_cycles=1)[0]["now_ps"] for n in (1, 11)
    ]
    on_the_way = times[0] - CYCLE
    later = times[1] - times[0]
    if blocking:
        assert later > 9 * on_the_way / 2  # the first one's line came from device memory, the others' from the L2
    else:
        assert later < on_the_way
