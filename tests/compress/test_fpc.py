"""FPC: sizes and codes known by hand, the fast paths against the reference model, damaged payloads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError
from buddysim.compress import compress, compressed_bits, decompress, fpc
from tests.compress.entries import entry, word, words_entry
from tests.reference.compress import ref_fpc

PATHS = fpc.PATHS[: fpc.PATHS.index(fpc.best_path()) + 1]

#: A word, and its code by the table of docs/reference/compressors.md.
CODES = {
    0x00000007: "001 0111",
    0xFFFFFFF8: "001 1000",
    0xFFFFFFFF: "001 1111",  # four equal bytes, too
    0x00000008: "010 00001000",
    0xFFFFFFF7: "010 11110111",
    0x0000007F: "010 01111111",
    0xFFFFFF80: "010 10000000",
    0x00000080: "011 0000000010000000",
    0xFFFFFF7F: "011 1111111101111111",
    0x00007FFF: "011 0111111111111111",
    0xFFFF8000: "011 1000000000000000",
    0x00008000: "111 00000000000000001000000000000000",
    0xFFFF7FFF: "111 11111111111111110111111111111111",
    0x3F800000: "100 0011111110000000",
    0x00010000: "100 0000000000000001",  # two halves of a signed byte, too
    0x0001FFFF: "101 00000001 11111111",
    0xFF80007F: "101 10000000 01111111",
    0xFF800080: "111 11111111100000000000000010000000",
    0xFF7F0001: "111 11111111011111110000000000000001",
    0x42424242: "110 01000010",
    0x80808080: "110 10000000",
    0x42424243: "111 01000010010000100100001001000011",
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("value", "code"), CODES.items(), ids=[f"{value:08x}" for value in CODES])
def test_codes_of_words(value: int, code: str, path: str) -> None:
    raw, bits = words_entry([value] * 32), code.replace(" ", "") * 32
    assert ref_fpc.encode(raw) == bits
    assert fpc.compressed_bits(np.frombuffer(raw, np.uint8), path=path).tolist() == [len(bits)]
    assert compress(raw, "fpc") == int(bits, 2).to_bytes(len(bits) // 8, "big")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("zeros", "runs"),
    [([*range(32)], 4), ([0], 1), ([31], 1), ([*range(8)], 1), ([*range(9)], 2), ([*range(15, 32)], 3), ([0, 2, 4], 3)],
)
def test_runs_of_zero_words(zeros: list[int], runs: int, path: str) -> None:
    raw = words_entry([0 if i in zeros else 0x12345678 for i in range(32)])
    bits = 6 * runs + 35 * (32 - len(zeros))
    assert fpc.compressed_bits(np.frombuffer(raw, np.uint8), path=path).tolist() == [bits]
    assert ref_fpc.compressed_bits(raw) == [bits]


def test_a_run_by_hand() -> None:
    assert compress(bytes(128), "fpc") == (0b000111000111000111000111).to_bytes(3, "big")
    raw = words_entry([0] * 9 + [1] * 23)
    assert ref_fpc.encode(raw) == "000111" + "000000" + "0010001" * 23


def near(value: int) -> st.SearchStrategy[int]:
    return st.integers(-2, 2).map(lambda by: (value + by) & 0xFFFFFFFF)


byte = st.integers(0, 255)
small = st.integers(-130, 130)
patterned = st.one_of(
    st.just(0),
    *(near(sign * 2**bits) for bits in (3, 7, 15) for sign in (1, -1)),
    byte.map(lambda value: value * 0x01010101),
    st.integers(0, 0xFFFF).map(lambda half: half << 16),
    st.tuples(small, small).map(lambda halves: (halves[0] & 0xFFFF) << 16 | halves[1] & 0xFFFF),
    word,
)


@st.composite
def mixtures(draw: st.DrawFn) -> bytes:
    """Words of every pattern, and runs of zero words of any length."""
    words = draw(st.lists(patterned, min_size=32, max_size=32))
    for _ in range(draw(st.integers(0, 3))):
        first, length = draw(st.integers(0, 31)), draw(st.integers(1, 32))
        words[first : first + length] = [0] * len(words[first : first + length])
    return words_entry(words)


structured = st.one_of(mixtures(), entry)


@given(st.lists(structured, min_size=1, max_size=5))
@settings(max_examples=100)
def test_every_path_gives_the_sizes_of_the_reference(entries: list[bytes]) -> None:
    raw = b"".join(entries)
    expected = ref_fpc.compressed_bits(raw)
    for path in PATHS:
        assert fpc.compressed_bits(np.frombuffer(raw, np.uint8), path=path).tolist() == expected


@given(structured)
@settings(max_examples=100)
def test_codes_are_those_of_the_reference_and_both_decode(raw: bytes) -> None:
    payload = compress(raw, "fpc")
    assert payload == ref_fpc.compress(raw)
    assert len(payload) == (int(compressed_bits(raw, "fpc")[0]) + 7) // 8
    assert decompress(payload, "fpc", 128) == ref_fpc.decompress(payload, 128) == raw


def test_paths_agree_on_much_data() -> None:
    rng = np.random.default_rng(7)
    words = rng.integers(0, 2**32, 32 * 4001, dtype=np.uint32)
    signed = words.view(np.int32) >> rng.integers(0, 32, 32 * 4001).astype(np.int32)
    data = np.where(rng.random(len(words)) < 0.5, signed.view(np.uint32), words << 16).view(np.uint8)
    sizes = [fpc.compressed_bits(data, path=path) for path in PATHS]
    for other in sizes[1:]:
        np.testing.assert_array_equal(sizes[0], other)


def decompressed_or_refused(payload: bytes) -> bytes | None:
    try:
        return decompress(payload, "fpc", 128)
    except BuddysimError as error:
        if not str(error).startswith("fpc: payload") or "\n" in str(error):
            raise
        return None


@given(st.binary(max_size=160))
@settings(max_examples=200)
def test_arbitrary_bytes_decode_or_are_refused(payload: bytes) -> None:
    raw = decompressed_or_refused(payload)
    assert raw is None or compress(raw, "fpc") == payload


@given(structured, st.data())
@settings(max_examples=200)
def test_damaged_payloads_never_pass_for_the_data(raw: bytes, data: st.DataObject) -> None:
    payload = bytearray(compress(raw, "fpc"))
    bit = data.draw(st.integers(0, len(payload) * 8 - 1))
    payload[bit // 8] ^= 0x80 >> bit % 8
    assert decompressed_or_refused(bytes(payload)) != raw


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("000111" * 3 + "000000" * 8, "not what"),  # a run in parts
        ("000111" * 3 + "000110" + "0010000", "not what"),  # a zero as a small number
        ("000111" * 3 + "000110" + "01000000001", "not what"),  # a longer pattern than need be
        ("000111" * 3 + "000001" + "000110", "entry 0 is corrupt"),  # more words than an entry has
    ],
)
def test_codes_that_no_entry_has_are_refused(code: str, message: str) -> None:
    padded = code + "0" * (-len(code) % 8)
    with pytest.raises(BuddysimError, match=message):
        decompress(int(padded, 2).to_bytes(len(padded) // 8, "big"), "fpc", 128)


def test_what_is_refused_at_once() -> None:
    with pytest.raises(BuddysimError, match="too short"):
        decompress(bytes(8), "fpc", 2**40 * 128)
    with pytest.raises(BuddysimError, match="expected one of scalar"):
        fpc.compressed_bits(np.zeros(128, np.uint8), path="mmx")
