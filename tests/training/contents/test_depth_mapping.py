"""Zeros that pooling retains."""

from __future__ import annotations

import pytest

from buddysim.training.contents.depth_mapping import _retained_zero_fraction


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [(0.5, 0.75, 0.5), (0.5, 0.25, 1.0), (0.0, 1.0, 0.0), (1.0, 1.0, 1.0)],
)
def test_pooling_retains_no_more_than_all_zeros(before: float, after: float, expected: float) -> None:
    assert _retained_zero_fraction(before, after) == expected
