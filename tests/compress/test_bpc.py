"""BPC: the check values of its definition, the fast paths against the reference model, and both ways."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError
from buddysim.compress import bpc, compress, compressed_bits, decompress
from tests.compress.entries import entry, words_entry
from tests.reference.compress import ref_bpc

MAX_BITS = 1089
PATHS = bpc.PATHS[: bpc.PATHS.index(bpc.best_path()) + 1]

CHECK_VALUES = {
    "all zero": ([0] * 32, 10),
    "every word 7": ([7] * 32, 14),
    "every word -1": ([-1] * 32, 14),
    "every word 1.0f": ([0x3F800000] * 32, 40),
    "0, 1, .., 31": (list(range(32)), 15),
    "0, 4, .., 124": (list(range(0, 128, 4)), 23),
    "+1, -1 alternating": ([1, -1] * 16, 83),
    "5 then zeros": ([5] + [0] * 31, 42),
    "zeros then last word 5": ([0] * 31 + [5], 35),
    "only word 16 is 5": ([0] * 16 + [5] + [0] * 15, 50),
    "extremes alternating": ([0x7FFFFFFF, 0x80000000] * 16, 109),
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("words", "bits"), CHECK_VALUES.values(), ids=CHECK_VALUES)
def test_check_values(words: list[int], bits: int, path: str) -> None:
    data = np.frombuffer(words_entry(words) * 8, dtype=np.uint8)  # enough for the widest path
    assert bpc.compressed_bits(data, path=path).tolist() == [bits] * 8


@pytest.mark.parametrize(("words", "bits"), CHECK_VALUES.values(), ids=CHECK_VALUES)
def test_check_values_of_the_reference_and_of_the_kernel(words: list[int], bits: int) -> None:
    raw = words_entry(words)
    assert ref_bpc.compressed_bits(raw) == [bits]
    assert len(compress(raw, "bpc")) == (bits + 7) // 8


@given(st.lists(entry, min_size=1, max_size=20), st.booleans())
def test_every_path_gives_the_sizes_of_the_reference(entries: list[bytes], unsigned: bool) -> None:
    expected = ref_bpc.compressed_bits(b"".join(entries), unsigned=unsigned)
    data = np.frombuffer(b"".join(entries), dtype=np.uint8)
    for path in PATHS:
        assert bpc.compressed_bits(data, unsigned=unsigned, path=path).tolist() == expected


@given(entry, st.booleans())
def test_bits_are_those_of_the_reference_and_both_decode(raw: bytes, unsigned: bool) -> None:
    assert 10 <= len(ref_bpc.encode(raw, unsigned=unsigned)) <= MAX_BITS
    payload = compress(raw, "bpc", unsigned=unsigned)
    assert payload == ref_bpc.compress(raw, unsigned=unsigned)
    assert decompress(payload, "bpc", 128, unsigned=unsigned) == raw
    assert ref_bpc.decompress(payload, 128, unsigned=unsigned) == raw


@given(st.lists(entry, max_size=5))
def test_several_entries_are_one_stream(entries: list[bytes]) -> None:
    raw = b"".join(entries)
    payload = compress(raw, "bpc")
    assert len(payload) == (int(compressed_bits(raw).sum()) + 7) // 8
    assert decompress(payload, "bpc", len(raw)) == raw


def test_paths_agree_on_much_data() -> None:
    rng = np.random.default_rng(7)
    kinds = [
        rng.integers(0, 2**32, 32 * 3001, dtype=np.uint32),
        np.cumsum(rng.integers(-3, 4, 32 * 3001)).astype(np.uint32),
        (rng.integers(0, 2**32, 32 * 3001, dtype=np.uint32) >> rng.integers(0, 32, 32 * 3001).astype(np.uint32)),
        rng.standard_normal(32 * 3001).astype(np.float32).view(np.uint32),
    ]
    data = np.concatenate(kinds).view(np.uint8)
    for unsigned in (False, True):
        sizes = [bpc.compressed_bits(data, unsigned=unsigned, path=path) for path in PATHS]
        for other in sizes[1:]:
            np.testing.assert_array_equal(sizes[0], other)


def test_words_read_as_unsigned_differ_where_a_sign_bit_differs() -> None:
    raw = words_entry([0x7FFFFFFF, 0x80000000] * 16)
    assert compressed_bits(raw).tolist() == [109]
    assert compressed_bits(raw, unsigned=True).tolist() == ref_bpc.compressed_bits(raw, unsigned=True) != [109]
    assert compressed_bits(words_entry([-1] * 32), unsigned=True).tolist() == [40]


def decompressed_or_refused(payload: bytes) -> bytes | None:
    try:
        return decompress(payload, "bpc", 128)
    except BuddysimError as error:
        if not str(error).startswith("bpc: payload") or "\n" in str(error):
            raise
        return None


@given(st.binary(max_size=160))
@settings(max_examples=300)
def test_arbitrary_bytes_decode_or_are_refused(payload: bytes) -> None:
    raw = decompressed_or_refused(payload)
    assert raw is None or compress(raw, "bpc") == payload


@given(entry, st.data())
@settings(max_examples=300)
def test_damaged_payloads_never_pass_for_the_data(raw: bytes, data: st.DataObject) -> None:
    payload = bytearray(compress(raw, "bpc"))
    bit = data.draw(st.integers(0, len(payload) * 8 - 1))
    payload[bit // 8] ^= 0x80 >> bit % 8
    assert decompressed_or_refused(bytes(payload)) != raw


@pytest.mark.parametrize("nbytes", [128, 1280, 2**40 * 128])
def test_a_payload_too_short_for_the_length_is_refused_at_once(nbytes: int) -> None:
    with pytest.raises(BuddysimError, match=r"too short|corrupt"):
        decompress(b"\x01", "bpc", nbytes)


def test_an_unknown_path_is_refused() -> None:
    with pytest.raises(BuddysimError, match="expected one of scalar"):
        bpc.compressed_bits(np.zeros(128, np.uint8), path="mmx")
