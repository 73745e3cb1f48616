"""Every dirty sector is written back, overwritten, freed or left at the end, on traces with copies and frees."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import buddysim
import buddysim.trace as bt
from buddysim.machine import Machine
from buddysim.replay.schemes import REGISTRY
from tests.replay.bare import TINY
from tests.replay.events import BASE, provenance
from tests.trace.builders import line, records

LINE, SECTOR = 128, 32
ENTRIES = 160
SLOTS = [BASE, BASE + ENTRIES * LINE, BASE + (1 << 30)]
WAYS_OUT = {
    "writeback": "l2.writeback_sectors",
    "overwritten": "l2.dirty_sectors_overwritten",
    "freed": "l2.dirty_sectors_freed",
}


def machine(**overrides: object) -> Machine:
    settings = {key.replace("__", "."): value for key, value in overrides.items()}
    return Machine.load("p100-nvlink2").with_overrides({**TINY, "dram.capacity": "1 GiB", **settings})


def accesses(writer: bt.TraceWriter, touched, stream: int = 0) -> None:
    """Return a kernel of one warp with operations of (kind, address, sectors, whole sectors)."""
    ops = [({"kind": kind, "flags": bt.FLAG_TIMED}, [line(at, mask, whole)]) for kind, at, mask, whole in touched]
    writer.begin_kernel("kernel", (1, 1, 1), (32, 1, 1), stream=stream)
    writer.add_blocks(*records([(0, [({"warp": 0}, ops)])]))
    writer.end_kernel()


def where_dirty_sectors_went(counters) -> dict[str, int]:
    went = {name: counters[counter] for name, counter in WAYS_OUT.items()}
    assert counters["l2.sectors_made_dirty"] == sum(went.values()) + counters["l2.dirty_sectors_at_end"]
    return went


events = st.lists(
    st.one_of(
        st.tuples(st.just("free"), st.integers(0, 2)),
        st.tuples(
            st.sampled_from(["htod", "dtoh", "dtod", "memset"]),
            st.integers(0, 2),
            st.integers(0, ENTRIES * LINE - 1) | st.integers(0, 300),
            st.integers(1, ENTRIES * LINE) | st.integers(1, 300),
        ),
        st.tuples(
            st.just("kernel"),
            st.integers(0, 2),
            st.lists(
                st.tuples(
                    st.integers(0, 2), st.integers(0, 2), st.integers(0, ENTRIES - 1), st.integers(1, 15), st.booleans()
                ),
                max_size=60,
            ),
        ),
    ),
    max_size=12,
)


def write(path, happened, on_host):
    """Write a trace of three allocations; a freed one is allocated again with the next event."""
    with bt.TraceWriter(path, provenance()) as writer:
        live: dict[int, int] = {}
        for event in happened:
            if event[0] == "free":
                if event[1] in live:
                    writer.free_allocation(live.pop(event[1]))
                continue
            for slot, base in enumerate(SLOTS):
                if slot not in live:
                    space = "host" if slot == 1 and on_host else "device"
                    live[slot] = writer.add_allocation(f"a{slot}", base, ENTRIES * LINE, space)
            if event[0] == "kernel":
                touched = [
                    (kind, SLOTS[slot] + at * LINE, mask, mask if kind == 1 and whole else 0)
                    for kind, slot, at, mask, whole in event[2]
                ]
                accesses(writer, touched, event[1])
                continue
            kind, slot, first, size = event
            size = min(size, ENTRIES * LINE - first)
            if kind == "memset":
                writer.memset(SLOTS[slot] + first, size, 0)
            else:
                writer.memcpy(kind, SLOTS[slot] + first, size, *([SLOTS[0]] if kind == "dtod" else []))
        if not live:
            writer.add_allocation("last", BASE, LINE)
    return path


@pytest.mark.parametrize("scheme", REGISTRY.names())
@given(happened=events, on_host=st.booleans(), fill=st.booleans(), concurrent=st.booleans())
@settings(deadline=None, max_examples=25)
def test_conservation(tmp_path_factory, scheme, happened, on_host, fill, concurrent):
    path = write(tmp_path_factory.mktemp("law") / "t.bin", happened, on_host)
    m = machine(l2__fill_on_memcpy=fill, kernel__concurrent_kernels=concurrent)
    where_dirty_sectors_went(buddysim.simulate(path, m, scheme, size_distribution="incompressible").counters)


def dirtied_then(tmp_path, then, fill=True, lines=1024, scheme="ideal"):
    """Return the destination of sectors that a kernel wrote whole, four per line, before an event."""
    with bt.TraceWriter(tmp_path / "t.bin", provenance()) as writer:
        data = writer.add_allocation("data", BASE, 1024 * LINE)
        accesses(writer, [(1, BASE + at * LINE, 15, 15) for at in range(lines)])
        then(writer, data)
    m = Machine.load("p100-nvlink2").with_overrides({"l2.fill_on_memcpy": fill})
    counters = buddysim.simulate(tmp_path / "t.bin", m, scheme).counters
    return {**where_dirty_sectors_went(counters), "left": counters["l2.dirty_sectors_at_end"]}


@pytest.mark.parametrize("fill", [False, True])
@pytest.mark.parametrize(
    ("first", "size", "overwritten"),
    [
        (0, 1024 * LINE, 4096),
        (0, 1, 0),  # a sector that is written in part stays dirty
        (31, 34, 1),
        (SECTOR, 3 * SECTOR, 3),
        (16, 2 * LINE, 7),
        (5 * LINE + 8, 1000, 30),
    ],
)
def test_a_copy_overwrites_the_sectors_that_it_writes_whole(tmp_path, fill, first, size, overwritten):
    went = dirtied_then(tmp_path, lambda writer, _: writer.memset(BASE + first, size, 0), fill)
    assert went == {"writeback": 0, "overwritten": overwritten, "freed": 0, "left": 4096 - overwritten}


def test_a_copy_larger_than_the_l2_overwrites_what_it_does_not_leave_there_too(tmp_path):
    with bt.TraceWriter(tmp_path / "t.bin", provenance()) as writer:
        writer.add_allocation("data", BASE, 512 * LINE)  # the L2 has 64 lines
        accesses(writer, [(1, BASE + at * LINE, 15, 15) for at in range(16)])
        writer.memcpy("htod", BASE, 512 * LINE)
    went = where_dirty_sectors_went(buddysim.simulate(tmp_path / "t.bin", machine(), "ideal").counters)
    assert went == {"writeback": 0, "overwritten": 64, "freed": 0}


def test_a_free_drops_what_is_dirty(tmp_path):
    went = dirtied_then(tmp_path, lambda writer, data: writer.free_allocation(data))
    assert went == {"writeback": 0, "overwritten": 0, "freed": 4096, "left": 0}


@pytest.mark.parametrize(("scheme", "misses"), [("ideal", 0), ("pinned-host", 64)])
def test_a_copy_to_host_memory_leaves_nothing_in_the_l2(tmp_path, scheme, misses):
    with bt.TraceWriter(tmp_path / "t.bin", provenance()) as writer:
        writer.add_allocation("data", BASE, 64 * LINE)
        accesses(writer, [])
        writer.memcpy("htod", BASE, 64 * LINE)
        accesses(writer, [(0, BASE + at * LINE, 1, 0) for at in range(64)])
    counters = buddysim.simulate(tmp_path / "t.bin", "p100-nvlink2", scheme).counters
    assert counters["l2.read_sector_misses"] == misses
