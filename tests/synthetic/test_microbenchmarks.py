"""Replayed microbenchmarks measure the latencies and bandwidths of the machine file."""

from __future__ import annotations

import pytest

import buddysim
from buddysim.synthetic import make_trace

P100 = buddysim.Machine.load("p100-nvlink2")
SIMPLE = P100.with_overrides({"dram.model": "simple"})
PERFECT = SIMPLE.with_overrides({"metadata_cache.perfect": "true", "buddy.raw_sectors": "whole"})


@pytest.fixture
def replayed(tmp_path):
    """Write a workload's trace and replay it."""

    def replay(workload, machine=P100, scheme="ideal", **settings):
        make_trace(workload, tmp_path / "t.bin", settings)
        return buddysim.simulate(tmp_path / "t.bin", machine, scheme).counters

    return replay


@pytest.fixture
def hop(replayed):
    """Return the time of each further hop of a chase (ps), from two lengths."""

    def measure(machine=P100, scheme="ideal", workload="chase", hops=1000, **settings):
        short, long = (
            replayed(workload, machine, scheme, hops=str(n), **settings)["time_ps"] for n in (hops, 3 * hops)
        )
        return (long - short) / (2 * hops)

    return measure


def test_a_chase_inside_the_l1_takes_its_load_to_use(hop):
    assert hop(footprint="8 KiB") == P100.ps(P100.l1.load_to_use)


def test_a_chase_inside_the_l2_takes_its_load_to_use(hop):
    """The first lap fills the L2."""
    assert hop(footprint="512 KiB", hops=8000, bypass_l1="true") == P100.ps(P100.l2.load_to_use)


def test_a_chase_through_device_memory_takes_its_load_to_use(hop):
    assert hop(SIMPLE, footprint="64 MiB") == SIMPLE.ps(SIMPLE.dram.load_to_use)


def test_banked_device_memory_adds_the_row_conflicts_of_random_addresses(hop):
    closed = P100.ps(P100.dram.load_to_use)
    rows = P100.ps(P100.dram.timing.tRP) + P100.ps(P100.dram.timing.tRCD)
    refresh = P100.ps(P100.dram.timing.tRFC) ** 2 / (2 * P100.ps(P100.dram.timing.tREFI))
    assert closed <= hop(footprint="64 MiB") <= closed + rows + refresh


def test_a_chase_through_host_memory_takes_the_links_load_to_use(hop):
    assert hop(footprint="64 MiB", space="host") == pytest.approx(P100.ps(P100.link.load_to_use), abs=1)


def test_an_entry_that_fits_its_target_costs_its_decompression(hop):
    cost = PERFECT.ps(PERFECT.dram.load_to_use) + PERFECT.ps(PERFECT.compression.latency)
    assert hop(PERFECT, "buddy", "buddy-latency", visit="smallest") == cost


def test_an_entry_that_overflows_costs_the_link_and_its_decompression(hop):
    """Three of the entry's four sectors come over the link; the last two follow the first."""
    cost = PERFECT.ps(PERFECT.link.load_to_use) + PERFECT.ps(PERFECT.compression.latency)
    per_sector = 32 * 10**12 / PERFECT.bytes_per_s(PERFECT.link.bandwidth)
    assert cost <= hop(PERFECT, "buddy", "buddy-latency", visit="largest") <= cost + 2 * per_sector + 2


@pytest.mark.parametrize("op", ["read", "write", "copy"])
def test_streams_over_the_link_reach_its_bandwidth_in_each_direction(replayed, op):
    result = replayed("link", op=op, footprint="32 MiB")
    peak = P100.bytes_per_s(P100.link.bandwidth)
    reached = {name: result[f"link.{name}_bytes"] / result["time_ps"] * 10**12 for name in ("read", "write")}
    used = {"read": ["read"], "write": ["write"], "copy": ["read", "write"]}[op]
    for direction in ("read", "write"):
        if direction not in used:  # requests, or acknowledgements, of 16 B for 128 B
            assert reached[direction] == pytest.approx(sum(reached.values()) / 10, rel=0.01)
        else:
            # reads of a copy lead, and its last 4 MiB of writes are still in the L2 at the end
            least = 0.85 if op == "copy" and direction == "write" else 0.97
            assert least * peak <= reached[direction] <= peak


@pytest.mark.parametrize("op", ["read", "write", "copy"])
def test_streams_reach_the_bandwidth_of_simple_device_memory(replayed, op):
    result = replayed("stream", SIMPLE, op=op)
    peak = SIMPLE.dram.channels * SIMPLE.dram.pseudo_channels * SIMPLE.bytes_per_s(SIMPLE.dram.pseudo_channel_bandwidth)
    reached = (result["device.read_bytes"] + result["device.write_bytes"]) / result["time_ps"] * 10**12
    assert 0.93 * peak <= reached <= peak


def test_streams_move_each_byte_once(replayed):
    result = replayed("stream", op="copy", footprint="16 MiB")
    assert result["device.read_bytes"] == 16 * 2**20
    assert result["device.write_bytes"] + 32 * result["l2.dirty_sectors_at_end"] == 16 * 2**20


@pytest.mark.parametrize(("stride", "sectors_per_load"), [(4, 4), (32, 32), (128, 32), (4096, 32)])
def test_strides_fetch_the_sectors_they_touch(replayed, stride, sectors_per_load):
    result = replayed("stride", stride=f"{stride} B", footprint="8 MiB")
    assert result["load_sectors"] == sectors_per_load * result["memory_instructions"]


@pytest.mark.parametrize(
    ("settings", "hits_and_merges_of_accesses"),
    [
        ({"pages": "8192", "laps": "2"}, (0, 2 * 8192)),  # twice the 4,096 lines of the metadata cache
        ({"pages": "512", "laps": "4"}, (3 * 512, 4 * 512)),  # every lap but the first
        ({"pages": "8192", "laps": "1", "entries_per_visit": "64"}, (63 * 8192, 64 * 8192)),
    ],
)
def test_metadata_hits_and_misses(replayed, settings, hits_and_merges_of_accesses):
    result = replayed("metadata", scheme="buddy", sizes="64 B", **settings)
    hits_and_merges = result["metadata.hits"] + result["metadata.mshr_merges"]
    assert (hits_and_merges, result["metadata.accesses"]) == hits_and_merges_of_accesses
    assert result["device.metadata_bytes"] == 32 * result["metadata.misses"]


def test_random_loads_fetch_one_sector_each(replayed):
    result = replayed("random", operations="2000", footprint="1 GiB")
    assert result["device.read_bytes"] == 32 * result["l2.read_sector_misses"]
    assert result["l2.read_sector_misses"] > 0.99 * result["load_sectors"]
