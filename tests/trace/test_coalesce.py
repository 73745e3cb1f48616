"""Coalescing agrees with its reference model, and with corner cases by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buddysim.trace.coalesce import MAX_ADDRESS, atomic_conflicts_of, bank_words_of, coalesce
from tests.reference.trace import ref_coalesce

WIDTHS = st.sampled_from([1, 2, 4, 8, 12, 16, 32, 128])


@st.composite
def operations(draw: st.DrawFn) -> tuple[list[int], int, bool]:
    base = draw(st.integers(0, MAX_ADDRESS - 2**20))
    pattern = draw(st.sampled_from(["any", "stride", "same line"]))
    n_lanes = draw(st.integers(0, 32))
    if pattern == "stride":
        stride = draw(st.integers(0, 300))
        offsets = [stride * lane for lane in range(n_lanes)]
    else:
        offsets = draw(st.lists(st.integers(0, 2**18 if pattern == "any" else 160), min_size=n_lanes, max_size=n_lanes))
    return [base + offset for offset in offsets], draw(WIDTHS), draw(st.booleans())


@given(st.lists(operations(), max_size=8))
def test_agrees_with_reference_model(ops: list[tuple[list[int], int, bool]]) -> None:
    lines, counts = coalesce(
        [address for addresses, _, _ in ops for address in addresses],
        [len(addresses) for addresses, _, _ in ops],
        [width for _, width, _ in ops],
        [is_store for _, _, is_store in ops],
    )
    expected = [ref_coalesce.coalesce_op(*op) for op in ops]
    assert counts.tolist() == [len(words) for words in expected]
    assert lines.tolist() == [word for words in expected for word in words]


@given(operations(), st.sampled_from([1, 2, 4, 8]))
def test_atomic_conflicts_agree_with_reference_model(op: tuple[list[int], int, bool], width: int) -> None:
    addresses = op[0]
    assert atomic_conflicts_of(addresses, width) == ref_coalesce.atomic_conflicts(addresses, width)
    aligned = [address // 8 * 8 for address in addresses]
    assert atomic_conflicts_of(aligned, width) == ref_coalesce.atomic_conflicts(aligned, width)


@pytest.mark.parametrize(
    ("addresses", "width", "expected"),
    [
        ([], 4, 0),
        ([64] * 32, 4, 31),
        (range(64, 192, 4), 4, 0),
        ([64, 68, 64, 64], 4, 2),  # three and one, in a sector
        ([64, 96, 64, 96], 4, 2),  # two and two, in sectors of their own
        ([64, 68, 64, 68], 4, 1),  # two and two, in a sector
        ([64, 68], 8, 1),
    ],
)
def test_meetings_by_hand(addresses: list[int], width: int, expected: int) -> None:
    assert atomic_conflicts_of(list(addresses), width) == expected


@given(operations())
def test_bank_words_agree_with_reference_model(op: tuple[list[int], int, bool]) -> None:
    addresses, width, _ = op
    lines = ref_coalesce.coalesce_op(addresses, width, is_store=False)
    assert bank_words_of(addresses, width) == ref_coalesce.bank_words(addresses, width, lines)


@pytest.mark.parametrize(
    ("addresses", "width", "cycles", "whole"),
    [
        ([64] * 32, 4, 1, 1),
        (range(0, 128, 4), 4, 1, 1),
        (range(0, 256, 8), 4, 2, 2),  # every second word
        (range(0, 384, 12), 4, 1, 3),  # every third
        (range(0, 1024, 32), 4, 8, 8),
        (range(0, 4096, 128), 4, 32, 8),  # a column
        (range(0, 256, 8), 8, 2, 2),  # doubles: half a warp at a time
        ([64] * 32, 8, 2, 1),
        (range(0, 4096, 128), 8, 32, 8),
        (range(0, 512, 16), 16, 4, 4),
        (range(0, 64, 2), 2, 1, 1),
        ([2], 4, 1, 1),  # two words, a bank each
        ([0, 126], 4, 2, 1),  # the second touches words 31 and 32: 32 in word 0's bank, in a sector of its own
        ([2], 128, 2, 2),  # words 0 and 32
        ([2, 1026, 2050], 128, 6, 4),
    ],
)
def test_bank_words_by_hand(addresses: list[int], width: int, cycles: int, whole: int) -> None:
    """Conflict cycles are those of 32 banks beyond a conflict-free access."""
    assert bank_words_of(list(addresses), width) == (cycles - whole) % 32


def test_bank_words_of_too_many_or_no_lanes() -> None:
    assert bank_words_of([], 4) == 0
    for addresses, width, message in (
        ([0] * 33, 4, "33 lanes"), ([0], 0, "of 0 B"), ([0], 129, "of 129 B"), ([MAX_ADDRESS], 4, "beyond"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            bank_words_of(addresses, width)


def test_full_warp_of_floats_is_one_fully_written_line() -> None:
    addresses = 0x1000 + 4 * np.arange(32)
    lines, counts = coalesce(addresses, [32], [4], [True])
    assert counts.tolist() == [1]
    assert lines.tolist() == [0x1000 >> 7 << 8 | 0xFF]
    lines, _ = coalesce(addresses, [32], [4], [False])
    assert lines.tolist() == [0x1000 >> 7 << 8 | 0x0F]


def test_a_straddling_access_touches_both_lines_in_order() -> None:
    lines, counts = coalesce([0x107C], [1], [8], [True])
    assert counts.tolist() == [2]
    assert lines.tolist() == [0x20 << 8 | 0x8, 0x21 << 8 | 0x1]


def test_lines_are_in_the_order_of_the_first_lane_that_touches_them() -> None:
    lines, _ = coalesce([0x2000, 0x1000, 0x2020, 0x0000], [4], [4], [False])
    assert lines.tolist() == [0x40 << 8 | 0x3, 0x20 << 8 | 0x1, 0x0 << 8 | 0x1]


@pytest.mark.parametrize(
    ("addresses", "lanes", "widths", "stores"),
    [
        ([1, 2], [1], [4], [0]),
        ([1] * 33, [33], [4], [0]),
        ([1], [1], [0], [0]),
        ([1], [1], [129], [0]),
        ([1], [1], [4, 4], [0]),
        ([2**63], [1], [4], [0]),
    ],
)
def test_impossible_operations_are_refused(
    addresses: list[int], lanes: list[int], widths: list[int], stores: list[int]
) -> None:
    with pytest.raises(ValueError):
        coalesce(np.array(addresses, dtype=np.uint64), lanes, widths, stores)
