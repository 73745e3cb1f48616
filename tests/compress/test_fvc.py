"""FVC: sizes and codes known by hand, its table, the kernel against the reference model, damaged payloads."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError
from buddysim.compress import compress, compressed_bits, decompress, entry_classes, fvc
from buddysim.compress.frequent_words import frequent_words
from tests.compress.entries import entry, words_entry
from tests.reference.compress import ref_fvc


@pytest.mark.parametrize(("table_words", "hit"), [(8, 4), (16, 5)])
def test_check_values(table_words: int, hit: int) -> None:
    options: dict[str, Any] = {"table_words": table_words}
    assert compressed_bits(bytes(128), "fvc", **options).tolist() == [32 * hit]
    table = (5, 0x3F800000)
    raw = words_entry([5, 0x3F800000, 6, 7] * 8)
    assert compressed_bits(raw, "fvc", table=table, **options).tolist() == [16 * hit + 16 * 33]
    distinct = words_entry(list(range(100, 132)))
    assert compressed_bits(distinct, "fvc", **options).tolist() == [table_words * hit + (32 - table_words) * 33]


def test_a_code_by_hand() -> None:
    raw = words_entry([9] * 30 + [7, 8])
    bits = "1000" * 30 + "1001" + "0" + format(8, "032b")
    padded = bits + "0" * (-len(bits) % 8)
    assert compress(raw, "fvc", table=(9, 7)) == int(padded, 2).to_bytes(len(padded) // 8, "big")
    carried = compress(raw, "fvc")
    assert carried[:32] == struct.pack("<8I", 9, 7, 8, 0, 0, 0, 0, 0)
    assert decompress(carried, "fvc") == raw


def test_table_has_frequent_words_and_of_ties_the_smaller_unsigned() -> None:
    words = np.array([0x80000000, 0x80000000, 1, 1, 0xFFFFFFFF, 7, 7, 7], "<u4")
    assert frequent_words([words], 8) == (7, 1, 0x80000000, 0xFFFFFFFF)
    assert frequent_words([words], 2) == (7, 1)
    assert frequent_words([], 8) == frequent_words([words[:0]], 8) == ()
    assert frequent_words([np.array([1, 0, 0, 0, 2], np.uint8)], 8) == (1, 2)
    assert fvc.options_from_sample([words]) == {"table_words": 8, "table": (7, 1, 0x80000000, 0xFFFFFFFF)}


@given(st.lists(st.lists(st.integers(0, 40), max_size=60), max_size=5), st.integers(1, 4))
def test_words_are_counted_over_all_blocks(blocks: list[list[int]], merged_at: int) -> None:
    from buddysim.compress import frequent_words as counting

    arrays = [np.array(block, "<u4") for block in blocks]
    whole, counting._MERGED_AT = counting._MERGED_AT, merged_at
    try:
        frequent = frequent_words(arrays, 8)
    finally:
        counting._MERGED_AT = whole
    assert list(frequent) == ref_fvc.frequent(b"".join(array.tobytes() for array in arrays), 8)


def test_sizes_and_classes_over_given_data_have_one_table() -> None:
    """The table is that of all data, also if the data take several blocks."""
    rare, common = words_entry([3] * 32), words_entry([*range(10, 18)] * 4)
    data = rare + common * 20_000
    assert compressed_bits(data, "fvc").tolist()[:2] == [32 * 33, 32 * 4]
    assert entry_classes(data, "fvc").tolist()[:2] == [7, 2]
    assert entry_classes(data + b"\0", "fvc", table=(3,)).tolist()[:2] == [2, 7]


#: Words of few values, so that some are frequent.
few = st.lists(st.sampled_from([0, 1, 2**31, 0xFFFFFFFF, *range(50, 62)]), min_size=32, max_size=32).map(words_entry)
tables = st.lists(st.integers(0, 60), max_size=8, unique=True).map(tuple)


@given(st.lists(st.one_of(few, entry), max_size=4), st.sampled_from([8, 16]), tables)
@settings(max_examples=150)
def test_the_kernel_agrees_with_the_reference_in_both_directions(
    entries: list[bytes], table_words: int, table: Any
) -> None:
    raw, options = b"".join(entries), {"table_words": table_words, "table": table}
    payload, sizes = compress(raw, "fvc", **options), compressed_bits(raw, "fvc", **options)
    assert sizes.tolist() == ref_fvc.compressed_bits(raw, **options)
    assert payload == ref_fvc.compress(raw, **options)
    carried = 4 * table_words if raw and not table else 0
    assert len(payload) == carried + (int(sizes.sum()) + 7) // 8
    assert decompress(payload, "fvc", len(raw), **options) == raw
    assert ref_fvc.decompress(payload, len(raw), **options) == raw


def decompressed_or_refused(payload: bytes, **options: Any) -> bytes | None:
    try:
        return decompress(payload, "fvc", 128, **options)
    except BuddysimError as error:
        if not str(error).startswith("fvc: payload") or "\n" in str(error):
            raise
        return None


@given(st.binary(max_size=200), tables)
@settings(max_examples=200)
def test_arbitrary_bytes_decode_or_are_refused(payload: bytes, table: Any) -> None:
    raw = decompressed_or_refused(payload, table=table)
    assert raw is None or compress(raw, "fvc", table=table) == payload


@given(few, st.data(), tables)
@settings(max_examples=200)
def test_damaged_payloads_never_pass_for_the_data(raw: bytes, data: st.DataObject, table: Any) -> None:
    payload = bytearray(compress(raw, "fvc", table=table))
    bit = data.draw(st.integers(0, len(payload) * 8 - 1))
    payload[bit // 8] ^= 0x80 >> bit % 8
    decoded = decompressed_or_refused(bytes(payload), table=table)
    assert decoded != raw
    assert decoded is None or compress(decoded, "fvc", table=table) == payload


def test_a_table_that_is_not_that_of_the_data_is_refused() -> None:
    raw = words_entry([9] * 30 + [7, 8])
    swapped = struct.pack("<8I", 7, 9, 8, 0, 0, 0, 0, 0) + compress(raw, "fvc", table=(7, 9, 8))
    with pytest.raises(BuddysimError, match="its table isn't that of its data"):
        decompress(swapped, "fvc")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"table_words": 4}, "table_words 4: expected 8 or 16"),
        ({"table": (1, 1)}, "table of 2 words: expected at most 8, each once"),
        ({"table": tuple(range(9))}, "table of 9 words: expected at most 8"),
        ({"table": (-1,)}, "expected words from 0 to 4294967295"),
        ({"table": (2**32,)}, "expected words from 0 to 4294967295"),
        ({"table": (1.5,)}, "expected words from 0 to 4294967295"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    for call in (
        lambda: compressed_bits(bytes(128), "fvc", **options),
        lambda: compress(bytes(128), "fvc", **options),
        lambda: decompress(bytes(200), "fvc", **options),
    ):
        with pytest.raises(BuddysimError, match=message):
            call()


def test_a_payload_too_short_is_refused_at_once() -> None:
    with pytest.raises(BuddysimError, match="too short for a table of 8 words"):
        decompress(bytes(8), "fvc", 2**40 * 128)
    with pytest.raises(BuddysimError, match=r"too short for \d+ bytes of data"):
        decompress(bytes(80), "fvc", 2**40 * 128, table=(1,))
