"""ZVC: sizes known by hand, the fast kernels against the reference model, both ways, damaged payloads."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError
from buddysim.compress import compress, compressed_bits, decompress, entry_classes, zvc
from tests.compress.entries import words_entry
from tests.compress.tensors import words
from tests.reference.compress import ref_zvc

PATHS = zvc.PATHS[: zvc.PATHS.index(zvc.best_path()) + 1]


@pytest.mark.parametrize(
    ("nonzero", "bits"),
    [(0, 32), (1, 64), (16, 32 + 16 * 32), (31, 32 + 31 * 32), (32, 1056)],
)
def test_entries_of_32_bit_words(nonzero: int, bits: int) -> None:
    assert compressed_bits(words_entry([7] * nonzero + [0] * (32 - nonzero)), "zvc").tolist() == [bits]


def test_entries_of_smaller_words() -> None:
    entry = words_entry([0x00010000, 0x000100FF] + [0] * 30)
    assert compressed_bits(entry, "zvc").tolist() == [32 + 2 * 32]
    assert compressed_bits(entry, "zvc", word_bits=16).tolist() == [64 + 3 * 16]
    assert compressed_bits(entry, "zvc", word_bits=8).tolist() == [128 + 3 * 8]


def test_stream_of_an_entry() -> None:
    payload = compress(words_entry([0, 0x11223344, 0, 5] + [0] * 28), "zvc")
    assert payload == struct.pack("<3I", 0b1010, 0x11223344, 5)
    assert decompress(payload, "zvc", 128) == words_entry([0, 0x11223344, 0, 5] + [0] * 28)


def test_windows_of_a_tensor_have_a_mask_for_each_32_words() -> None:
    tensor = np.arange(2048 + 512, dtype="<u4")  # two windows of 4 KB and half a one
    assert compressed_bits(tensor, "zvc", window=4096).tolist() == [1024 * 33 - 32, 1024 * 33, 512 * 33]
    assert compressed_bits(bytes(4096), "zvc", window=4096).tolist() == [1024]
    # Zero-value compression's bounds: 3.1 % longer without zeros, 32 times shorter with nothing else.
    assert 1024 * 33 / (4096 * 8) == 1.03125
    assert 4096 * 8 / 1024 == 32


def test_60_percent_zeros_by_both_countings() -> None:
    tensor = np.tile(np.array([0, 0, 0, 1, 1], "<u4"), 1024 * 4)
    with_mask = int(compressed_bits(tensor, "zvc", window=4096).sum())
    assert tensor.nbytes * 8 / with_mask == pytest.approx(1 / (0.4 + 1 / 32))  # 2.32
    assert tensor.nbytes * 8 / (with_mask - tensor.size) == 2.5


def test_a_short_last_mask() -> None:
    assert compressed_bits(struct.pack("<3I", 1, 0, 2), "zvc", window=4096).tolist() == [3 + 64]
    # Mask 101 from the lowest bit, then 1 and 2 in 32 bits each, 3 bits further up.
    code = (0b101 | 1 << 3 | 2 << 35).to_bytes(9, "little")
    assert compress(struct.pack("<3I", 1, 0, 2), "zvc", window=4096) == code
    assert decompress(code, "zvc", 12, window=4096) == struct.pack("<3I", 1, 0, 2)


def test_minus_zero_is_not_zero() -> None:
    tensor = np.array([0.0, -0.0] * 16, "<f4")
    assert compressed_bits(tensor, "zvc").tolist() == [32 + 16 * 32]
    assert decompress(compress(tensor, "zvc"), "zvc", 128) == tensor.tobytes()


def test_raw_fallback_costs_a_bit_per_window() -> None:
    dense, sparse = np.ones(1024, "<u4").tobytes(), bytes(4096)
    options = {"window": 4096, "raw_fallback": True}
    assert compressed_bits(dense + sparse, "zvc", **options).tolist() == [32768 + 1, 1024 + 1]
    payload = compress(dense + sparse, "zvc", **options)
    assert payload[0] & 3 == 0b01
    assert len(payload) == (32768 + 1024 + 2 + 7) // 8
    assert decompress(payload, "zvc", 8192, **options) == dense + sparse
    # A code as long as the window is nonzero: 992 words of 1024.
    equal = np.array([1] * 992 + [0] * 32, "<u4")
    assert compress(equal, "zvc", **options)[0] & 1 == 0


def test_entries_have_size_classes() -> None:
    data = words_entry([0] * 32) + words_entry([1] + [0] * 31) + words_entry([1] * 7 + [0] * 25) + words_entry([1] * 32)
    assert entry_classes(data, "zvc").tolist() == [0, 1, 3, 7]
    with pytest.raises(BuddysimError, match="size classes are of entries of 128 B"):
        entry_classes(data, "zvc", window=128)


word_bits = st.sampled_from([8, 16, 32])
windows = st.sampled_from([4, 12, 128, 132, 1024, 4096, 65536])


@given(st.data(), word_bits, windows, st.booleans())
@settings(max_examples=150)
def test_the_kernels_agree_with_the_reference_in_both_directions(
    data: st.DataObject, bits: int, window: int, raw: bool
) -> None:
    tensor = data.draw(words(bits))
    options = {"word_bits": bits, "window": window, "raw_fallback": raw}
    sizes = compressed_bits(tensor, "zvc", **options)
    assert sizes.tolist() == ref_zvc.compressed_bits(tensor, **options)
    assert sizes.sum() == len(ref_zvc.encode(tensor, **options))
    payload = compress(tensor, "zvc", **options)
    assert payload == ref_zvc.compress(tensor, **options)
    assert decompress(payload, "zvc", len(tensor), **options) == tensor
    for path in PATHS:
        assert zvc.compress(tensor, path=path, **options) == payload
        assert zvc.decompress(payload, len(tensor), path=path, **options) == tensor
    assert ref_zvc.decompress(payload, len(tensor), **options) == tensor


@given(words(), st.integers(0, 3))
def test_data_at_any_address(tensor: bytes, offset: int) -> None:
    view = np.frombuffer(b"\xff" * offset + tensor, np.uint8)[offset:]
    assert compress(view, "zvc", window=4096) == compress(tensor, "zvc", window=4096)


def decompressed_or_refused(payload: bytes, nbytes: int, **options: object) -> bytes | None:
    try:
        return decompress(payload, "zvc", nbytes, **options)
    except BuddysimError as error:
        if not str(error).startswith("zvc: payload") or "\n" in str(error):
            raise
        return None


@given(st.binary(max_size=600), st.integers(0, 200), word_bits, windows, st.booleans())
@settings(max_examples=300)
def test_arbitrary_bytes_decode_or_are_refused(payload: bytes, words: int, bits: int, window: int, raw: bool) -> None:
    options = {"word_bits": bits, "window": window, "raw_fallback": raw}
    data = decompressed_or_refused(payload, words * bits // 8, **options)
    assert data is None or compress(data, "zvc", **options) == payload
    for path in PATHS:
        try:
            assert zvc.decompress(payload, words * bits // 8, path=path, **options) == data
        except BuddysimError:
            assert data is None


@given(st.data(), word_bits, windows, st.booleans())
@settings(max_examples=300)
def test_damaged_payloads_never_pass_for_the_data(data: st.DataObject, bits: int, window: int, raw: bool) -> None:
    tensor = data.draw(words(bits, most=200).filter(bool))
    options = {"word_bits": bits, "window": window, "raw_fallback": raw}
    payload = bytearray(compress(tensor, "zvc", **options))
    bit = data.draw(st.integers(0, len(payload) * 8 - 1))
    payload[bit // 8] ^= 1 << bit % 8
    decoded = decompressed_or_refused(bytes(payload), len(tensor), **options)
    assert decoded != tensor
    assert decoded is None or compress(decoded, "zvc", **options) == payload


@given(words().filter(bool), st.data())
def test_cut_and_lengthened_payloads_are_refused(tensor: bytes, data: st.DataObject) -> None:
    payload = compress(tensor, "zvc", window=4096)
    cut = data.draw(st.integers(0, len(payload) - 1))
    for wrong in (payload[:cut], payload + b"\0", payload + b"\1"):
        assert decompressed_or_refused(wrong, len(tensor), window=4096) is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"word_bits": 64}, "word_bits 64: expected 8, 16 or 32"),
        ({"window": 0}, "window 0 B: expected a multiple of 4 B, at most 65536 B"),
        ({"window": -128}, "window -128 B"),
        ({"window": 65540}, "window 65540 B"),
        ({"window": 6}, "window 6 B: expected a multiple of 4 B"),
        ({"window": 2**40}, "window"),
        ({"window": 4096.0}, "window"),
        ({"windows": 4096}, "nearest: window"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, object], message: str) -> None:
    for call in (
        lambda: compressed_bits(bytes(128), "zvc", **options),
        lambda: compress(bytes(128), "zvc", **options),
        lambda: decompress(bytes(4), "zvc", 128, **options),
    ):
        with pytest.raises(BuddysimError, match=message):
            call()


def test_an_unknown_path_is_refused() -> None:
    for call in (
        lambda: zvc.compress(bytes(128), path="mmx"),
        lambda: zvc.decompress(bytes(4), 128, path="mmx"),
    ):
        with pytest.raises(BuddysimError, match="zvc: path 'mmx': expected one of scalar"):
            call()


def test_data_of_broken_words_are_refused() -> None:
    with pytest.raises(BuddysimError, match="data of 5 B: expected a multiple of 4 B"):
        compressed_bits(bytes(5), "zvc", window=4096)
    with pytest.raises(BuddysimError, match="data of 4 B: expected a multiple of 128 B"):
        compressed_bits(bytes(4), "zvc")
    with pytest.raises(BuddysimError, match="too short"):
        decompress(bytes(4), "zvc", 2**60, window=4096)
