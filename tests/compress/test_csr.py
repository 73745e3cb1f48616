"""CSR: codes known by hand, the kernel against the reference model and against Gist's rows, damaged payloads."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError
from buddysim.compress import compress, compressed_bits, decompress
from buddysim.gist import ssdc
from tests.compress.tensors import words
from tests.reference.compress import ref_csr


def tensor(count: int, nonzero: dict[int, int]) -> bytes:
    """Words that are zero except the given ones."""
    return struct.pack(f"<{count}I", *(nonzero.get(i, 0) for i in range(count)))


def test_a_row_of_a_whole_window_with_indices_of_4_bytes() -> None:
    raw = tensor(1024, {3: 7, 1000: 0x80000000})
    code = struct.pack("<I", 2) + struct.pack("<II", 3, 1000) + struct.pack("<II", 7, 0x80000000)
    assert compress(raw, "csr") == code
    assert compressed_bits(raw, "csr").tolist() == [8 * len(code)]
    assert decompress(code, "csr", 4096) == raw


def test_rows_of_256_columns_with_indices_of_1_byte() -> None:
    raw = tensor(600, {0: 5, 255: 6, 256: 7, 599: 8})
    code = struct.pack("<3I", 2, 3, 4) + bytes([0, 255, 0, 599 - 512]) + struct.pack("<4I", 5, 6, 7, 8)
    assert compress(raw, "csr", index_bytes=1) == code
    assert compressed_bits(raw, "csr", index_bytes=1).tolist() == [8 * len(code)]
    assert decompress(code, "csr", 2400, index_bytes=1) == raw


def test_sizes_by_hand() -> None:
    assert compressed_bits(bytes(4096 + 8), "csr").tolist() == [32, 32]
    assert compressed_bits(bytes(4096 + 8), "csr", index_bytes=1).tolist() == [4 * 32, 32]
    assert compressed_bits(bytes(4096), "csr", columns=100).tolist() == [11 * 32]
    ones = np.ones(1024, np.float32)
    assert compressed_bits(ones, "csr").tolist() == [32 + 1024 * 64]
    assert compressed_bits(ones, "csr", index_bytes=1).tolist() == [4 * 32 + 1024 * 40]
    assert compressed_bits(np.array([0.0, -0.0], "<f4"), "csr").tolist() == [32 + 64]


def test_raw_fallback_costs_a_bit_per_window() -> None:
    dense, options = np.ones(1024, "<f4").tobytes(), {"raw_fallback": True}
    assert compressed_bits(dense + bytes(4096), "csr", **options).tolist() == [32769, 33]
    payload = compress(dense + bytes(4096), "csr", **options)
    assert payload == b"\x01" + dense + bytes(4)
    assert decompress(payload, "csr", 8192, **options) == dense + bytes(4096)


@given(words(most=3000), st.sampled_from([(1, 256), (1, 100), (4, 256), (4, 1000)]))
def test_sizes_agree_with_gists_rows(raw: bytes, shape: tuple[int, int]) -> None:
    """Sizes agree for a whole tensor if a window has whole rows."""
    index_bytes, columns = shape
    rows = ssdc.encode(np.frombuffer(raw, np.float32), columns, index_bytes)
    options = {"index_bytes": index_bytes, "columns": columns, "window": 4 * columns * 4}
    assert int(compressed_bits(raw, "csr", **options).sum()) == 8 * rows.nbytes
    if index_bytes == 1 and columns == 256:
        assert int(compressed_bits(raw, "csr", index_bytes=1).sum()) == 8 * rows.nbytes


windows = st.sampled_from([4, 12, 128, 1020, 4096, 65536])
shapes = st.sampled_from([(1, 0), (4, 0), (1, 7), (1, 1), (1, 256), (4, 1), (4, 3)])


def options_of(shape: tuple[int, int], window: int, raw: bool) -> dict[str, Any]:
    index_bytes, columns = shape
    most = 256 if index_bytes == 1 else window // 4
    return {"index_bytes": index_bytes, "columns": min(columns, most), "window": window, "raw_fallback": raw}


@given(words(most=1200), shapes, windows, st.booleans())
@settings(max_examples=150)
def test_the_kernel_agrees_with_the_reference_in_both_directions(
    raw: bytes, shape: tuple[int, int], window: int, fallback: bool
) -> None:
    options = options_of(shape, window, fallback)
    payload, sizes = compress(raw, "csr", **options), compressed_bits(raw, "csr", **options)
    assert payload == ref_csr.compress(raw, **options)
    assert sizes.tolist() == ref_csr.compressed_bits(raw, **options)
    assert len(payload) == (int(sizes.sum()) + 7) // 8
    assert decompress(payload, "csr", len(raw), **options) == raw
    assert ref_csr.decompress(payload, len(raw), **options) == raw


def decompressed_or_refused(payload: bytes, nbytes: int, **options: Any) -> bytes | None:
    try:
        return decompress(payload, "csr", nbytes, **options)
    except BuddysimError as error:
        if not str(error).startswith("csr: payload") or "\n" in str(error):
            raise
        return None


small = st.lists(st.sampled_from([0, 0, 0, 1, 2, 3, 255]), max_size=300).map(bytes)


@given(st.one_of(st.binary(max_size=300), small), st.integers(0, 400), shapes, windows, st.booleans())
@settings(max_examples=300)
def test_arbitrary_bytes_decode_or_are_refused(
    payload: bytes, count: int, shape: tuple[int, int], window: int, fallback: bool
) -> None:
    options = options_of(shape, window, fallback)
    data = decompressed_or_refused(payload, 4 * count, **options)
    assert data is None or compress(data, "csr", **options) == payload


@given(words(most=300).filter(bool), st.data(), shapes, windows, st.booleans())
@settings(max_examples=200)
def test_damaged_payloads_never_pass_for_the_data(
    raw: bytes, data: st.DataObject, shape: tuple[int, int], window: int, fallback: bool
) -> None:
    options = options_of(shape, window, fallback)
    payload = bytearray(compress(raw, "csr", **options))
    bit = data.draw(st.integers(0, len(payload) * 8 - 1))
    payload[bit // 8] ^= 1 << bit % 8
    decoded = decompressed_or_refused(bytes(payload), len(raw), **options)
    assert decoded != raw
    assert decoded is None or compress(decoded, "csr", **options) == payload


@pytest.mark.parametrize(
    ("pointers", "indices", "values"),
    [
        ((1, 0), (0,), (5,)),  # a pointer that goes back
        ((1, 3), (0, 0), (5, 6)),  # more words than there are
        ((2, 2), (1, 0), (5, 6)),  # columns out of order
        ((2, 2), (1, 1), (5, 6)),
        ((0, 1), (6,), (5,)),  # a column that the last, short row doesn't have
        ((1, 1), (0,), (0,)),  # a word that is zero
    ],
)
def test_codes_that_no_tensor_has_are_refused(
    pointers: tuple[int, ...], indices: tuple[int, ...], values: tuple[int, ...]
) -> None:
    code = struct.pack("<2I", *pointers) + bytes(indices) + struct.pack(f"<{len(values)}I", *values)
    with pytest.raises(BuddysimError, match="window 0 is corrupt"):
        decompress(code, "csr", 56, index_bytes=1, columns=8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"index_bytes": 2}, "index_bytes 2: expected 1 or 4"),
        ({"columns": 257, "index_bytes": 1}, "columns 257: expected 0 to 256"),
        ({"columns": 1025}, "columns 1025: expected 0 to 1024"),
        ({"columns": -1}, "columns -1: expected 0 to 1024"),
        ({"window": 6}, "window 6 B: expected a multiple of 4 B"),
        ({"window": 1 << 40}, "at most 65536 B"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    for call in (
        lambda: compressed_bits(bytes(8), "csr", **options),
        lambda: compress(bytes(8), "csr", **options),
        lambda: decompress(bytes(4), "csr", 8, **options),
    ):
        with pytest.raises(BuddysimError, match=message):
            call()


def test_what_is_no_tensor_is_refused() -> None:
    with pytest.raises(BuddysimError, match="data of 6 B: expected a multiple of 4 B"):
        compressed_bits(bytes(6), "csr")
    with pytest.raises(BuddysimError, match="too short"):
        decompress(bytes(400), "csr", 2**60)
