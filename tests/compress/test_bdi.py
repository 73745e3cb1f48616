"""BDI: sizes and codes known by hand, the fast paths against the reference model, damaged payloads."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError
from buddysim.compress import bdi, compress, compressed_bits, decompress
from tests.compress.entries import entry
from tests.reference.compress import ref_bdi

PATHS = bdi.PATHS[: bdi.PATHS.index(bdi.best_path()) + 1]
FORMATS = {2: "h", 4: "i", 8: "q"}


def of_elements(k: int, *values: int) -> bytes:
    """An entry of `k`-byte elements that repeats the values."""
    some = [(value + 2 ** (8 * k - 1)) % 2 ** (8 * k) - 2 ** (8 * k - 1) for value in values]
    return struct.pack(f"<{128 // k}{FORMATS[k]}", *(some * 128)[: 128 // k])


FAR, MID = 0x1122334455667788, 0x11223344

#: Bytes, and bits with id and mask; each row is the smallest code of its entry alone.
CHECK_VALUES = {
    "zeros": (bytes(128), 1, 12),
    "repeated": (of_elements(8, FAR), 8, 68),
    "repeated word": (of_elements(4, 7), 8, 68),
    "B8D1": (of_elements(8, FAR, FAR + 127, FAR - 128), 24, 212),
    "B8D1 by its zero base": (of_elements(8, 127, FAR, -128), 24, 212),
    "B8D1, every element small": (of_elements(8, 1, -2), 24, 212),
    "B8D1 around the wrap": (of_elements(8, 2**63 - 1, -(2**63) + 100), 24, 212),
    "B4D1": (of_elements(4, MID, MID + 127, 5), 36, 324),
    "B4D1 around the wrap": (of_elements(4, 2**31 - 1, -(2**31) + 100, 3), 36, 324),
    "B8D2, beyond a byte above": (of_elements(8, FAR, FAR + 128), 40, 340),
    "B8D2, beyond a byte below": (of_elements(8, FAR, FAR - 129, 32767, -32768), 40, 340),
    "B2D1": (of_elements(2, 0x1234, 9, 0x1234 + 127, 0x7F, 0x1234 - 128, -128, -9), 66, 596),
    "B4D2": (of_elements(4, MID, MID + 128, -32768), 68, 580),
    "B8D4": (of_elements(8, FAR, FAR + 32768), 72, 596),
    "B8D4 at its limits": (of_elements(8, FAR, FAR + 2**31 - 1, FAR - 2**31, 2**31 - 1, -(2**31)), 72, 596),
    "two bases, neither zero": (of_elements(8, FAR, -FAR), 128, 1028),
    "beyond four bytes": (of_elements(8, FAR, FAR + 2**31, 3 * FAR), 128, 1028),
    "the base is the first that is not small": (of_elements(8, 1, FAR, 2 * FAR), 128, 1028),
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("raw", "nbytes", "whole"), CHECK_VALUES.values(), ids=CHECK_VALUES)
def test_check_values(raw: bytes, nbytes: int, whole: int, path: str) -> None:
    data = np.frombuffer(raw, np.uint8)
    assert bdi.compressed_bits(data, path=path).tolist() == ref_bdi.compressed_bits(raw) == [8 * nbytes]
    assert bdi.compressed_bits(data, count_mask=True, path=path).tolist() == [whole]
    assert ref_bdi.compressed_bits(raw, count_mask=True) == [whole]
    assert len(compress(raw, "bdi")) == (whole + 7) // 8


def test_codes_by_hand() -> None:
    assert compress(bytes(128), "bdi") == bytes(2)
    repeated = compress(of_elements(8, FAR), "bdi")
    assert int.from_bytes(repeated, "big") == (0b0001 << 64 | FAR) << 4
    base_delta = compress(of_elements(8, FAR, -1), "bdi")
    deltas = int.from_bytes(b"\x00\xff" * 8, "big")
    mask = 0b1010101010101010
    assert int.from_bytes(base_delta, "big") == (((0b0010 << 16 | mask) << 64 | FAR) << 128 | deltas) << 4
    raw = np.random.default_rng(1).bytes(128)
    assert int.from_bytes(compress(raw, "bdi"), "big") == (0b1111 << 1024 | int.from_bytes(raw, "big")) << 4


def test_masks_count_towards_the_smallest() -> None:
    """Both B2D1 (66 B, 64 mask bits) and B4D2 (68 B, 32 mask bits) fit."""
    raw = of_elements(4, 0x00121234, 0x00120005, 0x00121235)
    assert sorted(ref_bdi.codes_of(raw)) == ["0110", "0111", "1111"]
    assert compressed_bits(raw, "bdi").tolist() == [8 * 66]
    assert compressed_bits(raw, "bdi", count_mask=True).tolist() == [8 * 68 + 32 + 4]
    assert compress(raw, "bdi")[0] >> 4 == 0b0110


def near_a_base(seed: int) -> bytes:
    """Elements near a base or near zero, within or just beyond the width of a delta."""
    rng = np.random.default_rng(seed)
    k, d = [(2, 1), (4, 1), (4, 2), (8, 1), (8, 2), (8, 4)][rng.integers(6)]
    half, count = 2 ** (8 * d - 1), 128 // k
    offsets = rng.choice([0, 1, -1, half - 1, -half, *rng.integers(-half, half, 5)], count).tolist()
    if rng.random() < 0.3:
        offsets[rng.integers(count)] = half if rng.random() < 0.5 else -half - 1
    base = int(rng.integers(2**63, dtype=np.int64)) >> int(rng.choice([0, 0, 32, 50]))
    bases = rng.choice([0, 1], count, p=[0.3, 0.7]).tolist()
    return of_elements(k, *(base * origin + by for origin, by in zip(bases, offsets, strict=True)))


structured = st.one_of(
    st.integers(0, 2**32 - 1).map(near_a_base), entry, st.binary(min_size=8, max_size=8).map(lambda value: value * 16)
)


@given(st.lists(structured, min_size=1, max_size=5), st.booleans())
@settings(max_examples=100)
def test_every_path_gives_the_sizes_of_the_reference(entries: list[bytes], count_mask: bool) -> None:
    raw = b"".join(entries)
    expected = ref_bdi.compressed_bits(raw, count_mask=count_mask)
    data = np.frombuffer(raw, np.uint8)
    for path in PATHS:
        assert bdi.compressed_bits(data, count_mask=count_mask, path=path).tolist() == expected


@given(structured)
@settings(max_examples=100)
def test_codes_are_those_of_the_reference_and_both_decode(raw: bytes) -> None:
    payload = compress(raw, "bdi")
    assert payload == ref_bdi.compress(raw)
    assert len(payload) == (int(compressed_bits(raw, "bdi", count_mask=True)[0]) + 7) // 8
    assert decompress(payload, "bdi", 128) == ref_bdi.decompress(payload, 128) == raw


def test_every_encoding_is_the_smallest_of_some_entry() -> None:
    """The property tests above cover every encoding only if each one is chosen for some entry."""
    smallest = (
        min(ref_bdi.codes_of(near_a_base(seed)), key=lambda code: ref_bdi.size(code, False)) for seed in range(100)
    )
    assert {*smallest} >= {ref_bdi.RAW, *ref_bdi.BASE_DELTA}


def decompressed_or_refused(payload: bytes) -> bytes | None:
    try:
        return decompress(payload, "bdi", 128)
    except BuddysimError as error:
        if not str(error).startswith("bdi: payload") or "\n" in str(error):
            raise
        return None


@given(st.integers(0, 15), st.binary(max_size=160))
@settings(max_examples=200)
def test_arbitrary_bytes_decode_or_are_refused(id: int, payload: bytes) -> None:
    payload = bytes([id << 4 | payload[0] & 15]) + payload[1:] if payload else payload
    raw = decompressed_or_refused(payload)
    assert raw is None or compress(raw, "bdi") == payload


@given(structured, st.data())
@settings(max_examples=200)
def test_damaged_payloads_never_pass_for_the_data(raw: bytes, data: st.DataObject) -> None:
    payload = bytearray(compress(raw, "bdi"))
    bit = data.draw(st.integers(0, len(payload) * 8 - 1))
    payload[bit // 8] ^= 0x80 >> bit % 8
    assert decompressed_or_refused(bytes(payload)) != raw


def test_a_code_that_is_not_the_smallest_is_refused() -> None:
    zeros_as_raw = ((0b1111 << 1024) << 4).to_bytes(129, "big")
    assert ref_bdi.decompress(zeros_as_raw, 128) == bytes(128)
    with pytest.raises(BuddysimError, match="not what 128 bytes of data compress to"):
        decompress(zeros_as_raw, "bdi", 128)
    with pytest.raises(BuddysimError, match="entry 0 is corrupt"):
        decompress(b"\x80" + bytes(128), "bdi", 128)
    with pytest.raises(BuddysimError, match="too short"):
        decompress(bytes(8), "bdi", 2**40 * 128)


def test_an_unknown_path_is_refused() -> None:
    with pytest.raises(BuddysimError, match="expected one of scalar"):
        bdi.compressed_bits(np.zeros(128, np.uint8), path="mmx")
