"""C-Pack: sizes and codes known by hand, the kernel against the reference model, damaged payloads."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError
from buddysim.compress import compress, compressed_bits, decompress
from tests.compress.entries import entry, seeds, words_entry
from tests.reference.compress import ref_cpack

A, B = 0x11223344, 0x55667788

#: Words of an entry that goes on with zero words, and their codes by the table of docs/reference/compressors.md.
CODES = {
    "zzzz": ([0, 0], "00 00"),
    "zzzx": ([0x7F, 0xFF], "1101 01111111 1101 11111111"),
    "xxxx": ([A], f"01 {A:032b}"),
    "no pattern for a byte beyond": ([0x100], f"01 {0x100:032b}"),
    "mmmm": ([A, A], f"01 {A:032b} 10 0000"),
    "mmmx": ([A, A ^ 0xFF], f"01 {A:032b} 1110 0000 {0xBB:08b}"),
    "mmxx": ([A, A ^ 0xFF00], f"01 {A:032b} 1100 0000 {0xCC44:016b}"),
    "only one byte matches": ([A, A ^ 0xFF0000], f"01 {A:032b} 01 {A ^ 0xFF0000:032b}"),
    "the lower bytes alone don't match": ([A, A ^ 0x01000000], f"01 {A:032b} 01 {A ^ 0x01000000:032b}"),
    "static patterns first": ([0x100, 0x7F, 0x100], f"01 {0x100:032b} 1101 {0x7F:08b} 10 0000"),
    "zzzx isn't pushed": ([0x7F, A, A], f"1101 {0x7F:08b} 01 {A:032b} 10 0000"),
    "mmmx is pushed": ([A, A ^ 1, A ^ 1], f"01 {A:032b} 1110 0000 {0x45:08b} 10 0001"),
    "mmxx is pushed": ([A, A ^ 0xFF00, A ^ 0xFF01], f"01 {A:032b} 1100 0000 {0xCC44:016b} 1110 0001 {0x45:08b}"),
    "mmmm isn't pushed": ([A, A, B, B], f"01 {A:032b} 10 0000 01 {B:032b} 10 0001"),
    "the longest match, then the lowest slot": (
        [A, A ^ 0xFF00, A ^ 0xFF00 ^ 1, A ^ 0xFF00 ^ 2],
        f"01 {A:032b} 1100 0000 {0xCC44:016b} 1110 0001 {0x45:08b} 1110 0001 {0x46:08b}",
    ),
}


@pytest.mark.parametrize(("words", "code"), CODES.values(), ids=CODES)
def test_codes(words: list[int], code: str) -> None:
    raw = words_entry(words + [0] * (32 - len(words)))
    bits = code.replace(" ", "") + "00" * (32 - len(words))
    assert ref_cpack.encode(raw) == bits
    assert compressed_bits(raw, "cpack").tolist() == [len(bits)]
    padded = bits + "0" * (-len(bits) % 8)
    assert compress(raw, "cpack") == int(padded, 2).to_bytes(len(padded) // 8, "big")


def test_the_dictionary_holds_16_words_and_forgets_the_oldest() -> None:
    words = [(i + 1) << 16 for i in range(17)]
    repeated = words_entry(words + [words[1]] + [0] * 14)
    assert compressed_bits(repeated, "cpack").tolist() == ref_cpack.compressed_bits(repeated) == [17 * 34 + 6 + 14 * 2]
    forgotten = words_entry(words + [words[0]] + [0] * 14)
    assert compressed_bits(forgotten, "cpack").tolist() == ref_cpack.compressed_bits(forgotten) == [18 * 34 + 14 * 2]
    newest = words_entry(words + [words[16]] + [0] * 14)
    assert ref_cpack.encode(newest).endswith("10" + "0000" + "00" * 14)  # replaces the first one
    assert decompress(compress(newest, "cpack"), "cpack") == newest


def test_the_dictionary_is_emptied_per_entry() -> None:
    raw = words_entry([A] * 32)
    assert compressed_bits(raw * 2, "cpack").tolist() == [34 + 31 * 6] * 2


NEAR = [0, 0, 1, 0xFF, 0x100, 0xFF00, 0x10000, 0x800000, 0x01000000]


@st.composite
def relatives(draw: st.DrawFn) -> bytes:
    """Words that share their higher bytes with others, more of them than the dictionary holds, or not."""
    family = draw(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=draw(st.sampled_from([2, 6, 24]))))
    rng = random.Random(draw(seeds))
    return words_entry([rng.choice(family) ^ rng.choice(NEAR) for _ in range(32)])


structured = st.one_of(relatives(), entry)


@given(st.lists(structured, min_size=1, max_size=3))
@settings(max_examples=150)
def test_the_kernel_agrees_with_the_reference_in_both_directions(entries: list[bytes]) -> None:
    raw = b"".join(entries)
    payload = compress(raw, "cpack")
    assert compressed_bits(raw, "cpack").tolist() == ref_cpack.compressed_bits(raw)
    assert payload == ref_cpack.compress(raw)
    assert decompress(payload, "cpack", len(raw)) == ref_cpack.decompress(payload, len(raw)) == raw


def decompressed_or_refused(payload: bytes) -> bytes | None:
    try:
        return decompress(payload, "cpack", 128)
    except BuddysimError as error:
        if not str(error).startswith("cpack: payload") or "\n" in str(error):
            raise
        return None


@given(st.binary(max_size=160))
@settings(max_examples=200)
def test_arbitrary_bytes_decode_or_are_refused(payload: bytes) -> None:
    raw = decompressed_or_refused(payload)
    assert raw is None or compress(raw, "cpack") == payload


@given(structured, st.data())
@settings(max_examples=200)
def test_damaged_payloads_never_pass_for_the_data(raw: bytes, data: st.DataObject) -> None:
    payload = bytearray(compress(raw, "cpack"))
    bit = data.draw(st.integers(0, len(payload) * 8 - 1))
    payload[bit // 8] ^= 0x80 >> bit % 8
    assert decompressed_or_refused(bytes(payload)) != raw


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("1111" + "00" * 31, "entry 0 is corrupt"),  # no such pattern
        ("100000" + "00" * 31, "entry 0 is corrupt"),  # a slot that nothing was put into
        (f"01{A:032b}100001" + "00" * 30, "entry 0 is corrupt"),
        (f"01{A:032b}01{A:032b}" + "00" * 30, "not what"),  # a word that the dictionary has
        ("110100000000" + "00" * 31, "not what"),  # a zero word as another pattern
    ],
)
def test_codes_that_no_entry_has_are_refused(code: str, message: str) -> None:
    padded = code + "0" * (-len(code) % 8)
    with pytest.raises(BuddysimError, match=message):
        decompress(int(padded, 2).to_bytes(len(padded) // 8, "big"), "cpack")


def test_a_payload_too_short_for_the_length_is_refused_at_once() -> None:
    with pytest.raises(BuddysimError, match="too short"):
        decompress(bytes(8), "cpack", 2**40 * 128)
