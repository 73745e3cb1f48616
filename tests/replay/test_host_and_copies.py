"""Allocations in host memory, and copies and fills between kernels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import buddysim
import buddysim.trace as bt
from buddysim.buddy import Targets
from buddysim.machine import Machine
from buddysim.replay.primitives.kinds import Placement, Traffic
from buddysim.replay.schemes import REGISTRY
from buddysim.trace import open_trace
from tests.replay.bare import PLAIN, run_warps, tiny_machine
from tests.replay.events import BASE, load_block, provenance
from tests.trace.builders import records

LINE, SECTOR = 128, 32
ENTRIES = 512
SCHEMES = REGISTRY.names()
P100 = Machine.load("p100-nvlink2").with_overrides({**PLAIN, "l1.enabled": False})


@pytest.mark.parametrize("scheme", SCHEMES)
def test_host_memory_is_read_and_written_over_the_link_in_every_scheme(scheme):
    """Entries in host memory are uncompressed: exactly the requested sectors cross the link."""
    machine = tiny_machine(dram__model="simple")
    loads = [(0, [(entry, 5, 0)]) for entry in range(64)]
    stores = [(1, [(entry, 3, 3)]) for entry in range(64, 128)]
    evicting = [(0, [(entry, 1, 0)]) for entry in range(128, 256)]  # 16 KiB through an L2 of 8 KiB
    regions = [(0, 256, Placement.HOST, 4), (256, ENTRIES, 1 if scheme == "buddy" else 0, 2)]
    state = [0x11] * ENTRIES
    count, after = run_warps(machine, [loads + stores + evicting], scheme, regions=regions, state=state)
    assert count["link_read"] == [32 * (2 * 64 + 128)] + [0] * (len(count["link_read"]) - 1)
    assert count["link_write"][Traffic.WRITEBACK] == sum(count["link_write"]) == 32 * count["writeback_sectors"]
    assert count["writeback_sectors"] + count["dirty_left"] == 2 * 64
    assert count["writeback_sectors"] > 64
    assert sum(count["device"]) == 0
    assert count["scheme"].get("metadata.accesses", 0) == count["scheme"].get("buddy.fills", 0) == 0
    assert {value for name, value in count["scheme"].items() if name != "um.resident_bytes"} <= {0}
    assert after == state


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_load_from_host_memory_takes_the_links_latency(scheme):
    times = []
    for hops in (50, 100):
        warp = [(0, [(entry, 1, 0)]) for entry in range(hops)]
        times.append(run_warps(P100, [warp], scheme, regions=[(0, 128, 2, 4)])[0]["now_ps"])
    assert (times[1] - times[0]) / 50 == pytest.approx(P100.ps(P100.link.load_to_use), abs=1)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_host_allocation_of_a_trace(tmp_path, scheme):
    with bt.TraceWriter(tmp_path / "t.bin", provenance()) as writer:
        writer.add_allocation("host", BASE, 1 << 16, "host")
        writer.add_allocation("device", BASE + (1 << 30), 1 << 16)
        writer.begin_kernel("kernel", (1, 1, 1), (32, 1, 1))
        writer.add_blocks(*records([load_block(range(BASE, BASE + (1 << 16), LINE))]))
        writer.end_kernel()
    counters = buddysim.simulate(tmp_path / "t.bin", P100, scheme).counters
    assert counters["link.demand_bytes"] == counters["link.read_bytes"] == 512 * 32
    assert counters["device.read_bytes"] == counters["metadata.accesses"] == counters["um.page_faults"] == 0
    assert counters["footprint.host_bytes"] == (1 << 17 if scheme == "pinned-host" else 1 << 16)


def write_copies(path, first_loads, copies, second_loads):
    """Write loads of lines, copies and fills of (kind, first byte, bytes), and loads of lines."""
    with bt.TraceWriter(path, provenance()) as writer:
        writer.add_allocation("data", BASE, ENTRIES * LINE)
        for number, lines in enumerate((first_loads, second_loads)):
            writer.begin_kernel(f"kernel{number}", (1, 1, 1), (32, 1, 1))
            writer.add_blocks(*records([load_block([BASE + LINE * line for line in lines])]))
            writer.end_kernel()
            for kind, first, size in copies if number == 0 else ():
                if kind == "memset":
                    writer.memset(BASE + first, size, 0)
                elif kind == "dtod":
                    writer.memcpy(kind, BASE + first, size, BASE)
                else:
                    writer.memcpy(kind, BASE + first, size)
    return path


def misses(path, fill, **settings_):
    """Return the sectors demanded of memory."""
    overrides = {"l2.fill_on_memcpy": fill, **{key.replace("__", "."): value for key, value in settings_.items()}}
    return buddysim.simulate(path, P100.with_overrides(overrides), "ideal").counters["l2.read_sector_misses"]


line_numbers = st.lists(st.integers(0, ENTRIES - 1), max_size=40)
copies = st.lists(
    st.tuples(
        st.sampled_from(["htod", "dtoh", "dtod", "memset"]),
        st.integers(0, ENTRIES * LINE - 1),
        st.integers(0, 100 * LINE),
    ).map(lambda copy: (copy[0], copy[1], min(copy[2], ENTRIES * LINE - copy[1]))),
    max_size=4,
)


@given(first=line_numbers, between=copies, second=line_numbers)
@settings(deadline=None, max_examples=40)
def test_what_a_copy_leaves_in_the_l2(tmp_path_factory, first, between, second):
    """With the switch, fully copied sectors hit; without it, the L2 drops its sectors of the copy."""
    path = write_copies(tmp_path_factory.mktemp("copies") / "t.bin", first, between, second)
    written = [(start, start + size) for kind, start, size in between if kind != "dtoh" and size]
    whole = {line for line in range(ENTRIES) for start, end in written if start <= line * LINE <= end - SECTOR}
    held = set(first)
    assert misses(path, True) == len(held) + len(set(second) - held - whole)
    assert misses(path, False) == len(held) + len(set(second) - (held - whole))


def test_of_a_copy_larger_than_the_l2_the_end_stays(tmp_path):
    everything = range(ENTRIES)
    small = {"l2__size": "16 KiB", "l2__slices": 4, "l2__ways": 4, "dram__channels": 4}
    copy = [("htod", 0, ENTRIES * LINE)]
    path = write_copies(tmp_path / "t.bin", [], copy, reversed(everything[-64:]))
    assert misses(path, True, **small) <= 16  # half of what the L2 holds; sets fill unevenly
    path = write_copies(tmp_path / "u.bin", [], copy, everything[:64])
    assert misses(path, True, **small) == 64


@pytest.mark.parametrize(("copied_before", "sectors"), [(0, 2 * 0), (1, 2 * 32)])
def test_a_copy_gives_entries_their_next_sizes_at_once(tmp_path, copied_before, sectors):
    """Entries are zero at the start, even if copied before the first kernel; the next snapshot has two sectors."""
    with bt.TraceWriter(tmp_path / "t.bin", provenance()) as writer:
        data = writer.add_allocation("data", BASE, 64 * LINE)
        for number in range(2):
            if number == copied_before:
                writer.memcpy("htod", BASE, 32 * LINE)
            writer.begin_kernel("kernel", (1, 1, 1), (32, 1, 1))
            writer.add_blocks(*records([load_block(range(BASE, BASE + 64 * LINE, LINE) if number else [])]))
            writer.end_kernel()
        for point, size_class in ((0, 0), (1, 4)):
            snapshot = writer.add_snapshot(point, "")
            writer.add_size_map(snapshot, data, np.full(64, size_class, np.uint8))
    machine = P100.with_overrides({"l2.fill_on_memcpy": False})
    counters = buddysim.simulate(tmp_path / "t.bin", machine, "bandwidth-compression").counters
    assert counters["device.read_bytes"] == 32 * sectors


@pytest.mark.parametrize("stored", [8, 16])
@pytest.mark.parametrize("fill", [True, False])
def test_a_copy_gives_dirty_lines_at_both_of_its_ends_their_next_sizes(tmp_path, stored, fill):
    """It ends within entries 8 and 16, whose dirty sectors stay: zeros by the store, incompressible by the copy."""
    with bt.TraceWriter(tmp_path / "t.bin", provenance()) as writer:
        data = writer.add_allocation("data", BASE, 1024 * LINE)
        writer.begin_kernel("store", (1, 1, 1), (32, 1, 1))
        fields = {"kind": bt.OP_STORE}
        line = (BASE // LINE + stored) << 8 | 0x99  # sectors 0 and 3 whole: the copy leaves one of them
        writer.add_blocks(*records([(0, [({"warp": 0}, [(fields, [line])])])]))
        writer.end_kernel()
        writer.memcpy("htod", BASE + 8 * LINE + 64, 8 * LINE)
        writer.begin_kernel("evict", (1, 1, 1), (32, 1, 1))
        writer.add_blocks(*records([load_block(range(BASE + 64 * LINE, BASE + 1024 * LINE, LINE))]))
        writer.end_kernel()
        for point, size_class in ((0, 0), (1, 0), (1, 7)):
            snapshot = writer.add_snapshot(point, "")
            writer.add_size_map(snapshot, data, np.full(1024, size_class, np.uint8))
    with open_trace(tmp_path / "t.bin") as trace:
        small = {"l2.size": "16 KiB", "l2.slices": 4, "l2.ways": 4, "dram.channels": 4, "l2.fill_on_memcpy": fill}
        result = buddysim.simulate(trace, P100.with_overrides(small), "buddy", Targets.uniform(trace, "4x")).counters
    assert result["l2.writebacks"] == 1
    assert result["link.writeback_bytes"] == 3 * SECTOR
