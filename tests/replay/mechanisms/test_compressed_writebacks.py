"""When a compressed entry is written back (docs/explanation/replay-model.md, Compression): seen from what comes after
it.

The channel takes 64 ns for a sector. A read that comes in a bucket of the channel's port (65.536 ns) in which a write
has come waits until 64 ns after the bucket's start. Buckets begin at 327.68, 393.216, 458.752 ns. A read is 8 ns from
the slice to the channel, and back at the slice 84 + 8 after its grant; the decompressor and the way back to the SM add
10 + 50. Entries are of one sector (class 3), but for 1 to 31, which are zero and fill the L2 at no cost; entry 0 is
the oldest line, and dirty.
"""

import pytest

from tests.replay.mechanisms.hand import BUCKET, NS, load, machine, store, time_of

SLOW_CHANNEL = {"dram__pseudo_channel_bandwidth": "0.5 GB/s"}
ONE_SECTOR, ZERO = 0x33, 0x00
STATE = [ONE_SECTOR, *[ZERO] * 31, *[ONE_SECTOR] * 32, *[ZERO] * 64]
WHOLE, PARTLY_VALID = store((0, 15)), store(0)


def evict(first, evicted_ns, *then, state=STATE, scheme="bandwidth-compression", device_sectors=4, **overrides):
    """Evicts entry 0, which `first` has written, at its slice at `evicted_ns`; `then` are loads, at their slice at
    (entry, ns)."""
    ops, at_ns = [first, load(*range(1, 32), use_distance=0)], 2
    for op, slice_ns in ((store(40), evicted_ns), *((load(entry), ns) for entry, ns in then)):
        op[0]["critical_path_cycles"] = slice_ns - 50 - at_ns
        at_ns = slice_ns - 50
        ops.append(op)
    config = machine(**SLOW_CHANNEL, metadata_cache__perfect=True, **overrides)
    return time_of(config, ops, scheme=scheme, regions=[(0, 128, 1, device_sectors)], state=state)


def read_behind_write(bucket):
    """When a load is back at the SM whose read waits for a write in a bucket of the channel's port."""
    return bucket * BUCKET + (64 + 84 + 8 + 10 + 50) * NS


def read_at(slice_ns):
    """When a load is back at the SM that waits for nothing."""
    return (slice_ns + 8 + 84 + 8 + 10 + 50) * NS


def test_a_writeback_passes_the_compressor_first():
    """From 380 by 10 ns of compressor and 8 of way to the channel at 398, in bucket 6; without the compressor, at 388,
    in 5."""
    assert evict(WHOLE, 380, (41, 392)) == read_behind_write(6)
    assert evict(WHOLE, 370, (41, 392)) == read_at(392)


@pytest.mark.parametrize(("evicted_ns", "written_in"), [(335, 7), (330, 6)])
def test_a_writeback_of_a_partly_valid_line_reads_the_entry_first(evicted_ns, written_in):
    """From 335 the entry is read by 435, decompressed and compressed by 455, and at the channel at 463, in bucket 7."""
    assert (evict(PARTLY_VALID, evicted_ns, (41, 462)) == read_behind_write(7)) == (written_in == 7)
    assert (evict(PARTLY_VALID, evicted_ns, (41, 462)) == read_at(462)) == (written_in == 6)


def test_a_writeback_of_a_fully_valid_line_reads_nothing():
    assert evict(WHOLE, 335, (41, 462)) == read_at(462)


def test_writebacks_and_fills_serialize_at_the_compressor():
    """One entry per 60 ns, long after the first 31. The zero entry 64 comes to the decompressor in the bucket of the
    write-back."""
    assert evict(WHOLE, 2100, (64, 2105), compression__initiation_interval="60 ns") == 32 * BUCKET + (60 + 10 + 50) * NS
    assert evict(WHOLE, 2100, (64, 2105)) == (2105 + 10 + 50) * NS


def test_the_fill_of_the_way_does_not_wait_for_the_writeback():
    """A victim buffer holds the line while it is read, merged and compressed."""
    assert evict(PARTLY_VALID, 335) == (335 + 50) * NS


@pytest.mark.parametrize(("slots", "free_ns"), [(1, 455), (2, 336)])
def test_a_way_is_free_when_the_buffer_has_a_slot_for_its_line(slots, free_ns):
    """Entry 0 is evicted at 335, entry 1 at 336. Entry 0 leaves its slot at 455, read, decompressed and compressed."""
    slow = machine(**SLOW_CHANNEL, metadata_cache__perfect=True, l2__writeback_buffer=slots)
    late = store(40, critical_path_cycles=335 - 50 - 3)
    ops = [store(0), store(1), load(*range(2, 32), use_distance=0), late, store(41)]
    options = {"scheme": "bandwidth-compression", "regions": [(0, 128, 1, 4)], "state": [ONE_SECTOR] * 2 + STATE[2:]}
    assert time_of(slow, ops, **options) == (free_ns + 50) * NS


@pytest.mark.parametrize("latency_ns", [10, 1000, 10000])
def test_write_backs_in_flight_are_bounded_by_the_buffer(latency_ns):
    """Little's law: of 31 victims from 2082 on, one per ns, four are compressed at a time; the last is the third of
    the eighth four."""
    slow = machine(metadata_cache__perfect=True, l2__writeback_buffer=4, compression__latency=f"{latency_ns} ns")
    ops = [*[store((entry, 15)) for entry in range(32)], store(*range(32, 63), critical_path_cycles=2000)]
    options = {"scheme": "bandwidth-compression", "regions": [(0, 128, 1, 4)], "state": [ONE_SECTOR] * 128}
    waited_ps = time_of(slow, ops, **options) - (2082 + 50) * NS
    assert 7 * latency_ns * NS <= waited_ps <= (7 * latency_ns + 31) * NS


def test_a_writeback_of_an_overflowing_entry_waits_for_its_buddy_sectors():
    """Entry 0 has two sectors on each side. From 300 the device part is read by 464, the buddy part by 502; two
    sectors are written from 530, in bucket 8, not from 492.
    """
    overflowing = [0x77, *STATE[1:]]
    probe_ps = evict(PARTLY_VALID, 300, (41, 532), state=overflowing, scheme="buddy", device_sectors=2)
    assert probe_ps == 8 * BUCKET + (2 * 64 + 84 + 8 + 10 + 50) * NS


def test_a_way_is_free_when_device_has_accepted_and_the_link_has_taken_its_sectors():
    """The link takes 80 ns for two sectors. Two victims come to it in the bucket of 361, the second 10 ns after its
    eviction at 352: they have passed 160 ns after the bucket's start.
    """
    slow_link = machine(link__bandwidth="0.8 GB/s", metadata_cache__perfect=True)
    ops = [*[store((entry, 15)) for entry in range(32)], store(32, 33, critical_path_cycles=301 - 32)]
    options = {"scheme": "buddy", "regions": [(0, 128, 1, 2)], "state": [0x77] * 128}
    taken_ps = 361 * NS // BUCKET * BUCKET + 160 * NS
    assert time_of(slow_link, ops, **options) == taken_ps - 10 * NS + 50 * NS
