"""Fills and write-backs of compressed entries under `bandwidth-compression` (docs/explanation/replay-model.md,
Compression).

Entries of class 4 fill two sectors, 0x44: now and after a write-back. An entry comes to its slice 100 ns after its
request, 2 ns later for each further sector, and passes the decompressor in 10.
"""

from buddysim.trace import FLAG_BYPASS_L1, FLAG_TIMED
from tests.replay.mechanisms.hand import BUCKET, NS, load, machine, time_of

M = machine()
TWO_SECTORS, RAW = [0x44] * 128, [0x77] * 128
PAST_L1 = {"flags": FLAG_TIMED | FLAG_BYPASS_L1}


def bandwidth(config, ops, state=TWO_SECTORS):
    return time_of(config, ops, scheme="bandwidth-compression", regions=[(0, 128, 1, 4)], state=state)


def test_a_compressed_entry_moves_all_sectors_through_the_decompressor():
    assert bandwidth(M, [load(0)]) == (1 + 200 + 2 + 10) * NS
    assert bandwidth(M, [load((0, 15))]) == (1 + 200 + 2 + 10 + 3) * NS


def test_a_decompressed_line_has_four_valid_sectors():
    assert bandwidth(M, [load(0), load((0, 8))]) == (213 + 100) * NS


def test_a_raw_entry_moves_the_requested_sectors_without_decompression():
    assert bandwidth(M, [load(0)], RAW) == 201 * NS
    assert bandwidth(M, [load(0), load((0, 8))], RAW) == (201 + 200) * NS
    whole = machine(compression__fetch_whole_raw_entry=True)
    assert bandwidth(whole, [load(0)], RAW) == (1 + 200 + 3 * 2 + 10) * NS
    assert bandwidth(whole, [load(0), load((0, 8))], RAW) == (217 + 100) * NS


def test_a_zero_entry_moves_nothing():
    assert bandwidth(M, [load(0)], [0] * 128) == (1 + 100 + 10) * NS


def test_entries_serialize_at_the_decompressor():
    """One entry per 50 ns. Two reach it at 153 and 154: the second starts 50 ns after the bucket's start."""
    slow = machine(compression__initiation_interval="50 ns")
    bucket = 153 * NS // BUCKET * BUCKET
    assert bandwidth(slow, [load(0)]) == 213 * NS
    assert bandwidth(slow, [load(0, 1)]) == bucket + (50 + 10 + 50) * NS


def test_every_slice_has_its_own_decompressor():
    slow = machine(compression__initiation_interval="50 ns", l2__slices=2, l2__ways=16)
    assert bandwidth(slow, [load(0, 1)]) == (2 + 200 + 2 + 10) * NS
