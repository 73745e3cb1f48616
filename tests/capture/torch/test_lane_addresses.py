"""Addresses of a product's lanes: by hand, and as the reference model says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buddysim.capture.torch.access.lane_addresses import fill_addresses
from buddysim.capture.torch.access.tile_addresses import ElementAddresses, ProductAxis, TileAddresses, Window
from tests.reference.capture.torch.ref_lane_addresses import ref_lane_addresses

EXTENT = 20
windows = st.one_of(
    st.just(()),
    st.tuples(*(st.integers(1, 8),) * 2, *(st.integers(1, 3),) * 2, st.integers(1, 512), st.integers(1, 16)),
)
blocks_of = st.lists(st.tuples(*(st.integers(0, EXTENT),) * 4), min_size=1, max_size=3)


def random_axis(generator: np.random.Generator) -> list[tuple[int, int, int]]:
    """Return the offset and two coordinates of each part of an axis."""
    columns = (generator.integers(0, 4097, EXTENT), *generator.integers(-9, 10, (2, EXTENT)))
    return [tuple(row) for row in np.transpose(columns).tolist()]


@given(st.integers(0, 2**32 - 1), windows, blocks_of)
def test_addresses_agree_with_the_reference_model(
    seed: int, window: tuple[int, ...], blocks: list[tuple[int, int, int, int]]
) -> None:
    generator = np.random.default_rng(seed)  # hypothesis takes ten times as long for so many numbers
    first, second = random_axis(generator), random_axis(generator)
    threads = [(int(at), int(k)) for at, k in generator.integers(0, 10, (64, 2))]
    iterations, advance = 2, 3
    all_steps = np.full((2 * len(blocks), 3 * iterations, 32), -7, np.int64)
    fill_addresses(
        all_steps[:, 1::3],
        1 << 40,
        *(np.array(one, np.int64) for one in (first, second)),
        np.array(window, np.int64),
        np.array(threads, np.int64).T.copy(),
        np.array(blocks, np.int64).T.copy(),
        advance,
    )
    for iteration in range(iterations):
        of_threads = [(at, k + iteration * advance) for at, k in threads]
        expected = ref_lane_addresses(1 << 40, first, second, window, of_threads, blocks)
        assert all_steps[:, 3 * iteration + 1].ravel().tolist() == expected
    assert (all_steps.reshape(-1, 3, 32)[:, ::2] == -7).all()  # the instructions before and behind it


def axis(extent: int, first: int, step: int) -> ProductAxis:
    """Return an axis without an offset whose rows rise by `step` from `first`; its columns are 0."""
    return ProductAxis(extent, lambda number: 0 * number, lambda number: (first + step * number, 0 * number))


def test_a_filter_of_three_rows_by_hand() -> None:
    """Four rows of 100 bytes, padding 1, stride 2: outputs 0 and 1 read rows -1, 0, 1 and 1, 2, 3."""
    elements = ElementAddresses(1000, axis(2, -1, 2), axis(3, 0, 1), Window((4, 1), (1, 1), (100, 4)))
    threads = np.array([[0] * 3 + [1] * 3 + [2] * 26, [0, 1, 2] * 2 + [0] * 26])
    tile = TileAddresses(elements, threads, np.array([[0], [0], [2], [3]]))
    lanes = tile.at(0)
    assert lanes.shape == (1, 1, 32)
    assert lanes[0, 0, :6].tolist() == [-1, 1000, 1100, 1100, 1200, 1300]
    assert set(lanes[0, 0, 6:].tolist()) == {-1}  # behind the last output


def test_what_a_backward_pass_reads_by_hand() -> None:
    """The same convolution backwards: rows 0 to 3 of the input reach outputs at (row + 1 - filter row) / 2."""
    elements = ElementAddresses(1000, axis(4, 1, 1), axis(3, 0, -1), Window((2, 1), (2, 1), (100, 4)))
    threads = np.array([[0] * 3 + [3] * 3 + [0] * 26, [0, 1, 2] * 2 + [3] * 26])
    lanes = TileAddresses(elements, threads, np.array([[0], [0], [4], [3]])).at(0)[0, 0]
    assert lanes[:6].tolist() == [-1, 1000, -1, -1, -1, 1100]


@pytest.mark.parametrize(("row", "number"), [(0, -1), (1, -1), (2, 5), (3, 5)])
def test_parts_outside_of_an_operand_are_refused(row: int, number: int) -> None:
    blocks = np.array([[0], [0], [4], [4]])
    blocks[row] = number
    elements = ElementAddresses(0, axis(4, 0, 1), axis(4, 0, 1))
    with pytest.raises(ValueError, match="block 0"):
        TileAddresses(elements, np.zeros((2, 32), np.int64), blocks).at(0)
