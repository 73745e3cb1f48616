"""The part of a feature map that is generated."""

from __future__ import annotations

import pytest

from buddysim.training.contents.generated import _tile


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((4, 16, 64, 64), (4, 16, 64, 64)),  # 2^18 elements: whole
        ((32, 128, 512, 512), (16, 64, 16, 16)),  # 16 samples of 64 channels: a square of 16
        ((32, 128, 4, 512), (16, 64, 4, 64)),  # 4 rows: as wide as 2^18 allows
        ((32, 4096, 1, 1), (16, 4096, 1, 1)),
        ((32, 65536, 1, 1), (16, 16384, 1, 1)),  # no feature map: all channels that 2^18 elements allow
    ],
)
def test_a_tile_is_as_square_as_its_map_allows(shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    assert _tile(shape) == expected
