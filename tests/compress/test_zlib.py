"""zlib over windows: the library's own streams, both ways, damaged payloads."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError
from buddysim.compress import compress, compressed_bits, decompress, entry_classes
from buddysim.compress import zlib as compressor
from tests.compress.tensors import words

tensors = st.one_of(words(), st.binary(max_size=3000))
windows = st.sampled_from([1, 100, 128, 1024, 4096, 65536])


@given(tensors, windows.filter(lambda window: window > 1), st.sampled_from([0, 1, 6, 9]))
def test_each_window_is_a_stream_of_its_own(tensor: bytes, window: int, level: int) -> None:
    streams = [zlib.compress(tensor[at : at + window], level) for at in range(0, len(tensor), window)]
    options = {"window": window, "level": level}
    assert compressed_bits(tensor, "zlib", **options).tolist() == [8 * len(stream) for stream in streams]
    assert compress(tensor, "zlib", **options) == b"".join(streams)
    assert decompress(b"".join(streams), "zlib", len(tensor), **options) == tensor


def test_windows_of_4_kb_where_none_is_given() -> None:
    assert len(compressed_bits(bytes(4096 * 2 + 1), "zlib")) == 3
    assert compressor.library() == f"zlib {zlib.ZLIB_RUNTIME_VERSION}"


def test_raw_fallback_costs_a_bit_per_window() -> None:
    noise = np.random.default_rng(1).bytes(4096)
    options = {"raw_fallback": True}
    zeros = 8 * len(zlib.compress(bytes(4096)))
    assert compressed_bits(noise + bytes(4096), "zlib", **options).tolist() == [32769, zeros + 1]
    payload = compress(noise + bytes(4096), "zlib", **options)
    assert payload[0] == 1
    assert payload[1 : 1 + 4096] == noise
    assert len(payload) == (32769 + zeros + 1 + 7) // 8
    assert decompress(payload, "zlib", 8192, **options) == noise + bytes(4096)


@given(tensors, windows, st.booleans())
def test_both_ways(tensor: bytes, window: int, raw: bool) -> None:
    tensor = tensor[: 50 * window]
    options = {"window": window, "raw_fallback": raw}
    payload = compress(tensor, "zlib", **options)
    assert len(payload) == (int(compressed_bits(tensor, "zlib", **options).sum()) + 7) // 8
    assert decompress(payload, "zlib", len(tensor), **options) == tensor


def decompressed_or_refused(payload: bytes, nbytes: int, **options: object) -> bytes | None:
    try:
        return decompress(payload, "zlib", nbytes, **options)
    except BuddysimError as error:
        if not str(error).startswith("zlib: payload") or "\n" in str(error):
            raise
        return None


@given(st.binary(max_size=200), st.integers(0, 5000), windows, st.booleans())
@settings(max_examples=200)
def test_arbitrary_bytes_are_refused_in_one_line(payload: bytes, nbytes: int, window: int, raw: bool) -> None:
    decompressed_or_refused(payload, nbytes, window=window, raw_fallback=raw)


@given(tensors.filter(bool), st.data(), st.booleans())
@settings(max_examples=200)
def test_damaged_payloads_are_refused(tensor: bytes, data: st.DataObject, raw: bool) -> None:
    options = {"window": 1024, "raw_fallback": raw}
    payload = compress(tensor, "zlib", **options)
    cut = data.draw(st.integers(0, len(payload) - 1))
    assert decompressed_or_refused(payload[:cut], len(tensor), **options) is None
    assert decompressed_or_refused(payload + b"\0", len(tensor), **options) is None
    damaged = bytearray(payload)
    bit = data.draw(st.integers(0, len(payload) * 8 - 1))
    damaged[bit // 8] ^= 1 << bit % 8
    decoded = decompressed_or_refused(bytes(damaged), len(tensor), **options)
    # A stream may say the same in another way (its window size and level are hints); raw windows carry no checksum, and
    # that of the others, Adler-32, takes some short windows for each other.
    assert decoded is None or len(decoded) == len(tensor)
    assert raw or decoded is None or checksums(decoded) == checksums(tensor)


def checksums(tensor: bytes) -> list[int]:
    return [zlib.adler32(tensor[start : start + 1024]) for start in range(0, len(tensor), 1024)]


def test_a_bomb_stops_at_the_windows_length() -> None:
    bomb = zlib.compress(bytes(50_000_000), 9)
    with pytest.raises(BuddysimError, match="zlib: payload: window 0"):
        decompress(bomb, "zlib", 4096)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": 10}, "level 10: expected 0 to 9"),
        ({"level": -1}, "level -1: expected 0 to 9"),
        ({"window": 0}, "window 0 B"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, object], message: str) -> None:
    for call in (
        lambda: compressed_bits(bytes(8), "zlib", **options),
        lambda: compress(bytes(8), "zlib", **options),
        lambda: decompress(zlib.compress(bytes(8)), "zlib", 8, **options),
    ):
        with pytest.raises(BuddysimError, match=message):
            call()


def test_what_is_no_tensor_is_refused() -> None:
    with pytest.raises(BuddysimError, match="not of a tensor's windows"):
        entry_classes(bytes(128), "zlib")
    with pytest.raises(BuddysimError, match="too short"):
        decompress(bytes(8), "zlib", 2**60)
    with pytest.raises(BuddysimError, match="too short"):
        decompress(bytes(8), "zlib", 2**60, raw_fallback=True)
