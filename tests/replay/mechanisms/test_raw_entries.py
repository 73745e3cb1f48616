"""Raw entries that overflow their target ratio, with `buddy.raw_sectors` `single` (docs/reference/replay-rules.md).

A sector in device memory comes to the slice 100 ns after its request, one behind the link 200 ns after; each further
one 2 ns later. A load that issues at 1 ns is at its slice at 51 ns; replies are 1 ns apart.
"""

from __future__ import annotations

import pytest

from buddysim.replay.primitives.kinds import Traffic
from tests.replay.mechanisms.hand import NS, load, machine, run, store, time_of

RAW, COMPRESSES = 0x77, 0x37  # one sector after a write-back
PERFECT = machine(metadata_cache__perfect=True, buddy__raw_sectors="single")
EVICT = load(*range(1, 33), use_distance=0)


def count_of(ops, config=PERFECT, device_sectors=2, first=RAW):
    """Counters of operations; entry 0 has the state `first`."""
    regions = [(0, 256, 1, device_sectors)]
    return run(config, ops, scheme="buddy", regions=regions, state=[first, *[0] * 32, *[RAW] * 223])


def end_ns(*ops, config=PERFECT, device_sectors=2):
    regions = [(0, 256, 1, device_sectors)]
    return time_of(config, ops, scheme="buddy", regions=regions, state=[RAW] * 256) / NS


@pytest.mark.parametrize(("mask", "ns"), [(1, 201), (2, 201), (3, 203 + 1), (4, 301), (8, 301), (9, 301 + 1)])
def test_requested_sectors_move_alone_without_decompression(mask, ns):
    """The first two lie in device memory, the others behind the link."""
    assert end_ns(load((0, mask))) == ns
    assert end_ns(load((0, mask)), config=machine(metadata_cache__perfect=True)) >= 51 + 198 + 4 + 10 + 50


def test_other_sectors_are_not_filled():
    assert end_ns(load(0), load((0, 2))) == 201 + 200
    assert end_ns(load((0, 4)), load((0, 8))) == 301 + 300


def test_a_speculative_fill_keeps_what_it_fetched():
    """Sectors 0 and 1 come with the metadata, at 151 and 153; the request to the link leaves at 151."""
    config = machine(buddy__raw_sectors="single")
    assert end_ns(load(0), config=config) == 1 + 200 + 2
    assert end_ns(load(0), load((0, 2)), config=config) == 203 + 100
    assert end_ns(load((0, 4)), config=config) == 1 + 100 + 300
    assert end_ns(load((0, 4)), load(0), config=config) == 401 + 100


@pytest.mark.parametrize(("mask", "ns", "link", "device"), [(1, 301, 1, 1), (2, 301, 1, 0), (15, 307 + 3, 4, 1)])
def test_16x_targets_keep_8_b_of_sector_0(mask, ns, link, device):
    assert end_ns(load((0, mask)), device_sectors=0) == ns
    count = count_of([load((0, mask))], device_sectors=0)
    assert sum(count["link_read"]) == 32 * link
    assert sum(count["device"]) == device


@pytest.mark.parametrize(("mask", "device", "link"), [(1, 1, 0), (4, 0, 1), (6, 1, 1), (15, 2, 2)])
def test_dirty_sectors_are_written_where_they_lie(mask, device, link):
    """Nothing is read: the entry stays raw."""
    count = count_of([store((0, mask)), EVICT])
    assert count["device"][Traffic.WRITEBACK] == sum(count["device"]) == device
    assert sum(count["link_write"]) == 32 * link
    assert sum(count["link_read"]) == 0
    assert count["scheme"]["buddy.writebacks"] == (link > 0)


def test_missing_sectors_are_read_where_they_lie():
    """The entry compresses now: sectors 1 and 3 are read, one is written."""
    count = count_of([store((0, 5)), EVICT], first=COMPRESSES)
    assert (count["device"][Traffic.READ_MODIFY_WRITE], count["device"][Traffic.WRITEBACK]) == (1, 1)
    assert (sum(count["link_read"]), sum(count["link_write"])) == (32, 0)
