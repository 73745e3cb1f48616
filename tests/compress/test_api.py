"""The public API of compressors: accepted and refused arguments, size classes, threads."""

from __future__ import annotations

import array
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import buddysim.compress as bc
from buddysim.base.errors import BuddysimError
from buddysim.compress.compressors import REGISTRY
from buddysim.compress.size_classes import class_numbers
from tests.compress.entries import words_entry


@pytest.mark.parametrize(
    "data",
    [
        bytes(256),
        bytearray(256),
        memoryview(bytes(256)),
        array.array("d", [0.0] * 32),
        np.zeros((8, 8), np.float32),
        np.zeros((2, 4, 8), np.float32),
        np.zeros(256, np.uint8)[64:].view(np.uint16)[: 32 * 2].reshape(2, 32),
        np.array(b"\0" * 256),
    ],
    ids=lambda data: type(data).__name__,
)
def test_takes_any_contiguous_buffer(data: object) -> None:
    bits = bc.compressed_bits(data)  # type: ignore[arg-type]
    assert bits.dtype == np.uint32
    assert set(bits.tolist()) == {10}


def test_reads_unaligned_and_read_only_data() -> None:
    data = np.arange(129, dtype=np.uint8)[1:]
    data.flags.writeable = False
    assert bc.compressed_bits(data).tolist() == bc.compressed_bits(data.tobytes()).tolist()


def test_no_data_has_no_sizes() -> None:
    assert bc.compressed_bits(b"").shape == (0,)
    assert bc.entry_classes(b"").shape == (0,)
    assert bc.decompress(bc.compress(b""), "bpc", 0) == b""


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bc.compressed_bits(bytes(100)), "data of 100 B: expected a multiple of 128 B"),
        (lambda: bc.compress(bytes(1)), "data of 1 B: expected a multiple of 128 B"),
        (lambda: bc.compressed_bits(np.zeros((32, 64), np.uint8).T), "not C-contiguous"),
        (lambda: bc.compressed_bits(memoryview(bytes(256))[::2]), "not C-contiguous"),
        (lambda: bc.compressed_bits(np.array([None] * 16)), "Python objects"),
        (lambda: bc.compressed_bits([1, 2, 3]), "list: expected a C-contiguous array or buffer"),
        (
            lambda: bc.compressed_bits(bytes(128), "bcp"),
            f"'bcp': unknown, expected one of {', '.join(REGISTRY.names())} (nearest: bpc)",
        ),
        (lambda: bc.compressed_bits(bytes(128), "registry"), "compressor 'registry': unknown"),
        (lambda: bc.compressed_bits(bytes(128), "ref_bpc"), "compressor 'ref_bpc': unknown"),
        (lambda: bc.compressed_bits(bytes(128), "../bpc"), "unknown"),
        (
            lambda: bc.compressed_bits(bytes(128), unsinged=True),
            "bpc: option 'unsinged': unknown, expected one of unsigned (nearest: unsigned)",
        ),
        (lambda: bc.compressed_bits(bytes(128), unsigned=1), "bpc: option 'unsigned': 1: expected bool"),
        (lambda: bc.decompress(b"", "bpc", 100), "100 B: expected a multiple of 128 B"),
        (lambda: bc.decompress(b"", "bpc", -128), "expected a number of bytes from 0"),
        (lambda: bc.decompress(b"", "bpc", 1.5), "expected a number of bytes from 0"),
        (lambda: bc.decompress("text", "bpc", 128), "payload: str: expected"),
        (lambda: bc.size_class(-1), "integers from 0"),
        (lambda: bc.size_class(1.5), "integers from 0"),
        (lambda: bc.size_class(1, (0, 32)), "expected byte sizes up to 128"),
        (lambda: bc.size_class(1, ()), "expected byte sizes up to 128"),
    ],
)
def test_refuses_what_is_wrong_in_one_line(call: object, message: str) -> None:
    with pytest.raises(BuddysimError) as refused:
        call()  # type: ignore[operator]
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("bits", "stored", "sectors"),
    [
        *((0, 0, 0), (1, 8, 1), (10, 8, 1), (64, 8, 1), (65, 16, 1), (128, 16, 1), (129, 32, 1), (256, 32, 1)),
        *((257, 64, 2), (512, 64, 2), (513, 80, 3), (640, 80, 3), (641, 96, 3), (768, 96, 3), (769, 128, 4)),
        *((1024, 128, 4), (1089, 128, 4)),
    ],
)
def test_size_classes(bits: int, stored: int, sectors: int) -> None:
    assert bc.size_class(bits) == stored
    assert bc.sectors_needed(bits) == sectors
    assert bc.size_class(np.array([bits], np.uint32)).tolist() == [stored]
    assert bc.sectors_needed(np.array([bits], np.uint32)).tolist() == [sectors]


def test_only_a_zero_entry_takes_nothing() -> None:
    bits = bc.compressed_bits(bytes(128) + words_entry([1] * 32))
    assert bc.size_class(bits).tolist() == [8, 8]
    assert bc.size_class(bits, zero=[True, False]).tolist() == [0, 8]
    assert bc.size_class(bits, bc.SECTOR_CLASSES, zero=[True, False]).tolist() == [0, 32]
    assert bc.sectors_needed(bits, zero=[True, False]).tolist() == [0, 1]
    assert bc.size_class(10, zero=True) == 0


@given(st.integers(0, 1089))
def test_class_numbers_are_those_of_size_class(bits: int) -> None:
    number = class_numbers(np.array([bits], np.uint32), np.array([False]))[0]
    assert bc.STUDY_CLASSES[number] == bc.size_class(bits)
    assert bc.SECTORS_OF_CLASS[number] == bc.sectors_needed(bits)


def test_entry_classes_pad_the_last_entry() -> None:
    data = words_entry([0] * 32) + words_entry([7] * 32) + np.random.default_rng(1).bytes(128) + b"\x01"
    assert bc.entry_classes(data).tolist() == [0, 1, 7, 1]
    assert bc.entry_classes(data[:-1] + b"\x00").tolist() == [0, 1, 7, 0]


def test_entry_classes_over_several_blocks() -> None:
    rng = np.random.default_rng(3)
    data = rng.integers(0, 2**32, 32 * 20000, dtype=np.uint32) >> np.repeat(rng.integers(0, 32, 20000), 32).astype("u4")
    classes = bc.entry_classes(data)
    zero = ~data.reshape(-1, 32).any(axis=1)
    expected = bc.size_class(bc.compressed_bits(data), zero=zero)
    np.testing.assert_array_equal(np.array(bc.STUDY_CLASSES)[classes], expected)


def test_threads_get_the_same_answers() -> None:
    data = np.random.default_rng(5).integers(0, 2**16, 1 << 20, dtype=np.uint32)
    expected = bc.compressed_bits(data)
    with ThreadPoolExecutor(4) as pool:
        for bits in pool.map(bc.compressed_bits, [data] * 8):
            np.testing.assert_array_equal(bits, expected)
