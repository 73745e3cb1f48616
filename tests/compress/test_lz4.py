"""LZ4 over windows: the library's own blocks, both ways, damaged payloads, the library missing."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError
from buddysim.compress import compress, compressed_bits, decompress, entry_classes
from buddysim.compress import lz4 as compressor
from buddysim.compress.compressors import algorithms, tensor_algorithms
from tests.compress.tensors import words

NEEDED = "LZ4 isn't installed: pip install 'buddysim[lz4]'"
tensors = st.one_of(words(), st.binary(max_size=3000), st.integers(0, 3000).map(bytes))
windows = st.sampled_from([1, 100, 128, 1024, 4096, 65536])


def blocks_of(tensor: bytes, window: int, level: int) -> list[bytes]:
    block = pytest.importorskip("lz4.block", reason=NEEDED)
    mode: dict[str, Any] = {"mode": "high_compression", "compression": level} if level > 2 else {"mode": "default"}
    return [block.compress(tensor[at : at + window], store_size=False, **mode) for at in range(0, len(tensor), window)]


@pytest.fixture
def library() -> Any:
    return pytest.importorskip("lz4", reason=NEEDED)


@pytest.mark.usefixtures("library")
@given(tensors, windows.filter(lambda window: window > 1), st.sampled_from([1, 2, 3, 9, 12]))
@settings(max_examples=60)
def test_each_window_is_a_block_of_its_own(tensor: bytes, window: int, level: int) -> None:
    blocks = blocks_of(tensor, window, level)
    options: dict[str, Any] = {"window": window, "level": level}
    assert compressed_bits(tensor, "lz4", **options).tolist() == [8 * len(block) for block in blocks]
    assert compress(tensor, "lz4", **options) == b"".join(blocks)
    assert decompress(b"".join(blocks), "lz4", len(tensor), **options) == tensor


def test_the_library_and_its_version_are_named(library: Any) -> None:
    assert compressor.library() == f"LZ4 {library.library_version_string()}"
    assert compressor.provenance() == f"level 1 of {compressor.library()}"
    assert "lz4" in tensor_algorithms()


@pytest.mark.usefixtures("library")
def test_known_blocks() -> None:
    assert compress(b"abc", "lz4") == b"\x30abc"
    assert compress(bytes(4096), "lz4") == b"\x1f\x00\x01\x00" + b"\xff" * 15 + b"\xf6" + b"\x50" + bytes(5)
    noise = np.random.default_rng(1).bytes(300)
    assert compress(noise, "lz4") == b"\xf0\xff" + bytes([300 - 15 - 255]) + noise


@pytest.mark.usefixtures("library")
def test_raw_fallback_costs_a_bit_per_window() -> None:
    noise, options = np.random.default_rng(1).bytes(4096), {"raw_fallback": True}
    zeros = 8 * len(compress(bytes(4096), "lz4"))
    assert compressed_bits(noise + bytes(4096), "lz4", **options).tolist() == [32769, zeros + 1]
    payload = compress(noise + bytes(4096), "lz4", **options)
    assert payload[: 1 + 4096] == b"\x01" + noise
    assert decompress(payload, "lz4", 8192, **options) == noise + bytes(4096)


@pytest.mark.usefixtures("library")
@given(tensors, windows, st.booleans())
@settings(max_examples=60)
def test_both_ways(tensor: bytes, window: int, raw: bool) -> None:
    tensor = tensor[: 50 * window]
    options: dict[str, Any] = {"window": window, "raw_fallback": raw}
    payload = compress(tensor, "lz4", **options)
    assert len(payload) == (int(compressed_bits(tensor, "lz4", **options).sum()) + 7) // 8
    assert decompress(payload, "lz4", len(tensor), **options) == tensor


def decompressed_or_refused(payload: bytes, nbytes: int, **options: Any) -> bytes | None:
    try:
        return decompress(payload, "lz4", nbytes, **options)
    except BuddysimError as error:
        if not str(error).startswith("lz4: payload") or "\n" in str(error):
            raise
        return None


@pytest.mark.usefixtures("library")
@given(st.binary(max_size=200), st.integers(0, 5000), windows, st.booleans())
@settings(max_examples=200)
def test_arbitrary_bytes_decode_or_are_refused(payload: bytes, nbytes: int, window: int, raw: bool) -> None:
    decoded = decompressed_or_refused(payload, nbytes, window=window, raw_fallback=raw)
    assert decoded is None or len(decoded) == nbytes


@pytest.mark.usefixtures("library")
@given(tensors.filter(bool), st.data(), st.booleans())
@settings(max_examples=150)
def test_damaged_payloads_are_refused(tensor: bytes, data: st.DataObject, raw: bool) -> None:
    options: dict[str, Any] = {"window": 1024, "raw_fallback": raw}
    payload = compress(tensor, "lz4", **options)
    cut = data.draw(st.integers(0, len(payload) - 1))
    assert decompressed_or_refused(payload[:cut], len(tensor), **options) is None
    assert decompressed_or_refused(payload + b"\0", len(tensor), **options) is None
    damaged = bytearray(payload)
    bit = data.draw(st.integers(0, len(payload) * 8 - 1))
    damaged[bit // 8] ^= 1 << bit % 8
    # Blocks have no checksum: a damaged literal or match decodes to other data of the same length.
    decoded = decompressed_or_refused(bytes(damaged), len(tensor), **options)
    assert decoded is None or len(decoded) == len(tensor)


@pytest.mark.usefixtures("library")
def test_lengths_without_an_end_and_bombs_are_refused() -> None:
    for wrong in (
        b"\xf0" + b"\xff" * 100,
        b"\x1f\x00\x01\x00" + b"\xff" * 400,
        b"\x1f\x00",
        b"\x1f\x00\x05\x00\x50" + bytes(5),
    ):
        with pytest.raises(BuddysimError, match="lz4: payload: window 0"):
            decompress(wrong, "lz4", 25)
    with pytest.raises(BuddysimError, match="too short"):
        decompress(bytes(8), "lz4", 2**60)
    with pytest.raises(BuddysimError, match="too short"):
        decompress(bytes(8), "lz4", 2**60, raw_fallback=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": 13}, "level 13: expected 1 to 12"),
        ({"level": 0}, "level 0: expected 1"),
        ({"window": 0}, "window 0 B"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    for call in (
        lambda: compressed_bits(bytes(8), "lz4", **options),
        lambda: compress(bytes(8), "lz4", **options),
        lambda: decompress(bytes(8), "lz4", 8, **options),
    ):
        with pytest.raises(BuddysimError, match=message):
            call()


def test_entries_have_no_size_classes() -> None:
    with pytest.raises(BuddysimError, match="not of a tensor's windows"):
        entry_classes(bytes(128), "lz4")


def test_without_the_library_it_is_named_but_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lz4.block", None)
    monkeypatch.setitem(sys.modules, "lz4", None)
    assert "lz4" in algorithms()
    assert "lz4" not in tensor_algorithms()
    assert compressor.provenance() == "level 1 of LZ4, not installed"
    for call in (lambda: compress(bytes(8), "lz4"), lambda: decompress(bytes(8), "lz4", 8)):
        with pytest.raises(BuddysimError) as refused:
            call()
        assert str(refused.value) == "lz4: needs the LZ4 library: pip install 'buddysim[lz4]'"
