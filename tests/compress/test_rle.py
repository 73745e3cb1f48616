"""RLE: codes known by hand, the kernels against the reference model, both ways, damaged payloads."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError
from buddysim.compress import compress, compressed_bits, decompress, entry_classes
from tests.compress.tensors import words
from tests.reference.compress import ref_rle


def tensor_of(*runs: tuple[int, int]) -> bytes:
    """A tensor of runs, each (value, count)."""
    return b"".join(struct.pack("<I", value) * count for value, count in runs)


@pytest.mark.parametrize(
    ("runs", "code"),
    [
        ([(0, 3), (7, 2)], b"\x03\x02" + struct.pack("<2I", 7, 7)),
        ([(7, 1), (0, 1)], b"\x00\x01" + struct.pack("<I", 7) + b"\x01\x00"),
        ([(0, 255), (7, 1)], b"\xff\x01" + struct.pack("<I", 7)),
        ([(0, 256), (7, 1)], b"\xff\x00\x01\x01" + struct.pack("<I", 7)),
        ([(0, 255)], b"\xff\x00"),
        ([(0, 1024)], b"\xff\x00" * 4 + b"\x04\x00"),
        ([(7, 256)], b"\x00\xff" + struct.pack("<I", 7) * 255 + b"\x00\x01" + struct.pack("<I", 7)),
        ([(7, 255), (0, 2)], b"\x00\xff" + struct.pack("<I", 7) * 255 + b"\x02\x00"),
    ],
)
def test_codes_of_zero_runs(runs: list[tuple[int, int]], code: bytes) -> None:
    tensor = tensor_of(*runs)
    assert compress(tensor, "rle") == code
    assert compressed_bits(tensor, "rle").tolist() == [8 * len(code)]
    assert decompress(code, "rle", len(tensor)) == tensor


@pytest.mark.parametrize(
    ("runs", "code"),
    [
        ([(0, 3), (7, 2)], struct.pack("<IBIB", 0, 3, 7, 2)),
        ([(7, 255)], struct.pack("<IB", 7, 255)),
        ([(7, 256)], struct.pack("<IBIB", 7, 255, 7, 1)),
        ([(0x80000000, 1), (0, 1)], struct.pack("<IBIB", 0x80000000, 1, 0, 1)),
    ],
)
def test_codes_of_value_runs(runs: list[tuple[int, int]], code: bytes) -> None:
    tensor = tensor_of(*runs)
    assert compress(tensor, "rle", kind="value") == code
    assert compressed_bits(tensor, "rle", kind="value").tolist() == [8 * len(code)]
    assert decompress(code, "rle", len(tensor), kind="value") == tensor


def test_runs_end_with_their_window() -> None:
    tensor = bytes(4096 + 8)
    assert compressed_bits(tensor, "rle").tolist() == [80, 16]
    assert compressed_bits(tensor, "rle", window=8192).tolist() == [(1026 + 254) // 255 * 16]


def test_minus_zero_is_not_zero() -> None:
    assert compressed_bits(np.array([0.0, -0.0], "<f4"), "rle").tolist() == [8 * 6]


def test_raw_fallback_costs_a_bit_per_window() -> None:
    dense, sparse = tensor_of(*((value, 1) for value in range(1, 1025))), bytes(4096)
    for kind, zeros in (("zero", 80), ("value", 5 * 5 * 8)):
        options = {"kind": kind, "raw_fallback": True}
        assert compressed_bits(dense + sparse, "rle", **options).tolist() == [32769, zeros + 1]
        payload = compress(dense + sparse, "rle", **options)
        assert payload[0] == 1
        assert len(payload) == (32769 + zeros + 1 + 7) // 8
        assert decompress(payload, "rle", 8192, **options) == dense + sparse


kinds = st.sampled_from(["zero", "value"])
windows = st.sampled_from([4, 12, 128, 1020, 1024, 4096, 65536])


@given(st.data(), kinds, windows, st.booleans())
@settings(max_examples=150)
def test_the_kernels_agree_with_the_reference_in_both_directions(
    data: st.DataObject, kind: str, window: int, raw: bool
) -> None:
    tensor = data.draw(words(most=1200))
    options = {"kind": kind, "window": window, "raw_fallback": raw}
    payload = compress(tensor, "rle", **options)
    sizes = compressed_bits(tensor, "rle", **options)
    assert payload == ref_rle.compress(tensor, **options)
    assert sizes.tolist() == ref_rle.compressed_bits(tensor, **options)
    assert len(payload) == (sizes.sum() + 7) // 8
    assert decompress(payload, "rle", len(tensor), **options) == tensor
    assert ref_rle.decompress(payload, len(tensor), **options) == tensor


def decompressed_or_refused(payload: bytes, nbytes: int, **options: object) -> bytes | None:
    try:
        return decompress(payload, "rle", nbytes, **options)
    except BuddysimError as error:
        if not str(error).startswith("rle: payload") or "\n" in str(error):
            raise
        return None


small = st.lists(st.sampled_from([0, 1, 2, 3, 254, 255]), max_size=300).map(bytes)


@given(st.one_of(st.binary(max_size=300), small), st.integers(0, 400), kinds, windows, st.booleans())
@settings(max_examples=300)
def test_arbitrary_bytes_decode_or_are_refused(payload: bytes, words: int, kind: str, window: int, raw: bool) -> None:
    options = {"kind": kind, "window": window, "raw_fallback": raw}
    data = decompressed_or_refused(payload, 4 * words, **options)
    assert data is None or compress(data, "rle", **options) == payload


@given(st.data(), kinds, windows, st.booleans())
@settings(max_examples=300)
def test_damaged_payloads_never_pass_for_the_data(data: st.DataObject, kind: str, window: int, raw: bool) -> None:
    tensor = data.draw(words(most=300).filter(bool))
    options = {"kind": kind, "window": window, "raw_fallback": raw}
    payload = bytearray(compress(tensor, "rle", **options))
    bit = data.draw(st.integers(0, len(payload) * 8 - 1))
    payload[bit // 8] ^= 1 << bit % 8
    decoded = decompressed_or_refused(bytes(payload), len(tensor), **options)
    assert decoded != tensor
    assert decoded is None or compress(decoded, "rle", **options) == payload
    assert decompressed_or_refused(compress(tensor, "rle", **options) + b"\0", len(tensor), **options) is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "ones"}, "kind 'ones': expected one of zero, value"),
        ({"window": 2}, "window 2 B: expected a multiple of 4 B, at most 65536 B"),
        ({"window": 1 << 40}, "at most 65536 B"),
        ({"word_bits": 8}, "option 'word_bits': unknown"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, object], message: str) -> None:
    for call in (
        lambda: compressed_bits(bytes(8), "rle", **options),
        lambda: compress(bytes(8), "rle", **options),
        lambda: decompress(b"\x02\x00", "rle", 8, **options),
    ):
        with pytest.raises(BuddysimError, match=message):
            call()


def test_what_is_no_tensor_is_refused() -> None:
    with pytest.raises(BuddysimError, match="data of 6 B: expected a multiple of 4 B"):
        compressed_bits(bytes(6), "rle")
    with pytest.raises(BuddysimError, match="not of a tensor's windows"):
        entry_classes(bytes(128), "rle")
    with pytest.raises(BuddysimError, match="too short"):
        decompress(b"\xff\x00", "rle", 2**60)
    with pytest.raises(BuddysimError, match="too short"):
        decompress(b"", "rle", 2**60, kind="value", raw_fallback=True)
