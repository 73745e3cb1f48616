"""What waits for metadata under `buddy` (docs/explanation/replay-model.md, Compression).

A metadata line of 32 B covers 64 entries; it comes 100 ns after its request, as data do.
"""

import pytest

from tests.replay.mechanisms.hand import NS, load, machine, time_of

TWO_DEVICE_SECTORS = [(0, 256, 1, 2)]
FITS, OVERFLOWS = 0x44, 0x77  # two sectors, four


def buddy(config, ops, state, regions=TWO_DEVICE_SECTORS):
    return time_of(config, ops, scheme="buddy", regions=regions, state=state)


def test_overlap_fetches_what_fits_with_its_metadata():
    """Both requested at 51, at the slice at 151; the second sector comes 2 ns later."""
    assert buddy(machine(), [load(0)], [FITS] * 256) == (1 + 200 + 2 + 10) * NS
    serial = machine(metadata_cache__speculative_fetch=False)
    assert buddy(serial, [load(0)], [FITS] * 256) == (1 + 100 + 200 + 2 + 10) * NS


@pytest.mark.parametrize("overlap", [True, False])
def test_buddy_memory_is_fetched_when_the_metadata_are_known(overlap):
    """At 151, not at 51: two sectors over the link are at the slice 202 ns after that."""
    config = machine(metadata_cache__speculative_fetch=overlap)
    assert buddy(config, [load(0)], [OVERFLOWS] * 256) == (151 + 198 + 4 + 10 + 50) * NS


def test_a_pending_metadata_line_gives_no_size():
    """The first entry's miss brings the line at 151; the second entry, at its slice at 52, overflows and waits for
    that."""
    assert buddy(machine(), [load(0, 1)], [FITS, OVERFLOWS, *[FITS] * 254]) == (151 + 198 + 4 + 10 + 50) * NS


def test_a_metadata_hit_costs_nothing():
    assert buddy(machine(), [load(0), load(1)], [FITS] * 256) == (213 + 200 + 2 + 10) * NS
    assert buddy(machine(), [load(0), load(64)], [FITS] * 256) == (213 + 200 + 2 + 10) * NS  # a miss, but overlapped
    serial = machine(metadata_cache__speculative_fetch=False)
    assert buddy(serial, [load(0), load(1)], [FITS] * 256) == (313 + 200 + 2 + 10) * NS
    assert buddy(serial, [load(0), load(64)], [FITS] * 256) == (313 + 300 + 2 + 10) * NS


def test_a_lookup_has_a_latency():
    """The line of a miss is requested 7 ns later, and a hit's size is known 7 ns later."""
    slow = machine(metadata_cache__hit_latency="7 ns", metadata_cache__speculative_fetch=False)
    assert buddy(slow, [load(0)], [FITS] * 256) == (7 + 313) * NS
    assert buddy(slow, [load(0), load(1)], [FITS] * 256) == (7 + 313 + 7 + 200 + 2 + 10) * NS


def test_perfect_metadata_are_known_at_once():
    perfect = machine(metadata_cache__perfect=True, metadata_cache__speculative_fetch=False)
    assert buddy(perfect, [load(0)], [FITS] * 256) == (1 + 200 + 2 + 10) * NS
    assert buddy(perfect, [load(0)], [OVERFLOWS] * 256) == (51 + 198 + 4 + 10 + 50) * NS


@pytest.mark.parametrize(("state", "arrival_ns"), [(0x11, 100), (0x33, 200 + 0), (0x77, 200 + 6)])
def test_16x_targets(state, arrival_ns):
    """8 B cost one device sector; more, that and all their sectors over the link."""
    perfect = machine(metadata_cache__perfect=True)
    assert buddy(perfect, [load(0)], [state] * 256, [(0, 256, 1, 0)]) == (51 + arrival_ns + 10 + 50) * NS
    assert buddy(perfect, [load(0)], [0x00] * 256, [(0, 256, 1, 0)]) == (51 + 10 + 50) * NS


def test_a_1x_target_without_bypass_is_compressed_and_needs_metadata():
    serial = machine(metadata_cache__speculative_fetch=False)
    assert buddy(serial, [load(0)], [FITS] * 256, [(0, 256, 1, 4)]) == (1 + 100 + 200 + 2 + 10) * NS
    assert buddy(serial, [load(0)], [OVERFLOWS] * 256, [(0, 256, 1, 4)]) == (1 + 100 + 200) * NS


def test_data_are_not_usable_before_their_metadata():
    """A metadata line of 128 B comes at 157; the speculative fetch of its one device sector ends at 151."""
    long_lines = machine(metadata_cache__line="128 B", metadata_cache__size="512 B")
    assert buddy(long_lines, [load(0)], [0x33] * 256, [(0, 256, 1, 1)]) == (157 + 10 + 50) * NS


#: Two L2 slices and two of the metadata cache, a channel behind each. Entry 0 and the metadata of all of 0 to 63 lie at
#: slice 0, entry 1 at slice 1.
TWO_SLICES = {
    "l2__slices": 2,
    "l2__size": "8 KiB",
    "metadata_cache__slices": 2,
    "metadata_cache__size": "256 B",
    "dram__channels": 2,
}
HASHED = {**TWO_SLICES, "metadata_cache__interleaving": "hashed", "metadata_cache__hop_latency": "7 ns"}


@pytest.mark.parametrize("queues", [False, True])
def test_metadata_at_another_slice_are_a_hop_away(queues):
    """Entry 1 asks at 51 + 7; the miss is known at 65, and what fits is fetched then. Entry 0 has its metadata next to
    it."""
    config = machine(**HASHED, crossbar__input_queued=queues)
    assert buddy(config, [load(1)], [FITS] * 256) == (213 + 7 + 7) * NS
    assert buddy(config, [load(0)], [FITS] * 256) == 213 * NS
    assert buddy(machine(**TWO_SLICES), [load(1)], [FITS] * 256) == 213 * NS
    assert buddy(config, [load(1)], [OVERFLOWS] * 256) == (165 + 198 + 4 + 10 + 50) * NS


def test_a_size_comes_back_from_another_slice():
    """Without speculation, data are fetched when the size is back: 7 ns after the line's arrival, or after a hit."""
    serial = machine(**HASHED, metadata_cache__speculative_fetch=False)
    assert buddy(serial, [load(1)], [FITS] * 256) == (313 + 7 + 7) * NS
    assert buddy(serial, [load(0), load(1)], [FITS] * 256) == (313 + 212 + 7 + 7) * NS


def test_hops_take_the_bandwidth_of_slices():
    """A sector takes 64 ns: the hop of entry 1, at slice 0 at 59, waits for entry 0 until 64, and is back at 71.
    The reply of a sector takes its time, too."""
    narrow = machine(**HASHED, l2__bandwidth="0.5 GB/s")
    assert buddy(narrow, [load(0, 1)], [FITS] * 256) == (71 + 102 + 10 + 64) * NS


def test_each_slice_has_its_own_copy_of_a_metadata_line():
    """A second entry of the line misses at its own slice, and hits at the same one: entries 1 and 2."""
    own = {**TWO_SLICES, "metadata_cache__interleaving": "own_slice"}
    serial = machine(**own, metadata_cache__speculative_fetch=False)
    assert buddy(serial, [load(1)], [FITS] * 256) == 313 * NS
    assert buddy(serial, [load(0), load(1)], [FITS] * 256) == (313 + 312) * NS
    assert buddy(serial, [load(1), load(2)], [FITS] * 256) == (313 + 212) * NS
