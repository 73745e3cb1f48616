"""Ranges of predicted times: by hand, and sources that are left out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from buddysim.training.cost.ranges import LEVEL, MeasuredRatio, covered, range_of


def test_a_range_lies_around_the_median() -> None:
    """Of four rows the rank is 5 x 0.92, the last: 1.2 is 1.2 / 1.05 from the median of 1.05."""
    assert LEVEL == 0.92
    low, high = range_of([1.0, 1.0, 1.1, 1.2])
    assert (low, high) == (pytest.approx(1.05 * 1.05 / 1.2), pytest.approx(1.2))


def test_the_prediction_itself_is_inside() -> None:
    low, high = range_of([1.4, 1.5, 1.5, 1.6])
    assert (low, high) == (1.0, pytest.approx(1.5 * 1.5 / 1.4))


@given(st.lists(st.floats(0.2, 5.0), min_size=1, max_size=40))
def test_the_level_of_the_rows_is_inside(ratios: list[float]) -> None:
    low, high = range_of(ratios)
    inside = sum(low * (1 - 1e-9) <= ratio <= high * (1 + 1e-9) for ratio in ratios)
    assert inside >= LEVEL * len(ratios)


def test_a_source_is_held_against_the_others_alone() -> None:
    """The range of b and c, 1.5 / 1.5 to 1.5 x 1.5, holds both rows of a; that of a, and of a and c, not b's 2.25."""
    rows = [MeasuredRatio("kind", "p100", "a", ratio) for ratio in (1.0, 1.5)]
    rows += [MeasuredRatio("kind", "a100-40", "b", 2.25), MeasuredRatio("kind", "a100-40", "c", 1.0)]
    held = covered([*rows, MeasuredRatio("alone", "p100", "a", 1.0)])
    assert (held["kind", "older"].rows, held["kind", "older"].inside) == (2, 1.0)
    assert held["kind", "older"].half_width == pytest.approx((1.625 * 1.625 - 1.0) / 2, abs=0.01)
    assert (held["kind", "Ampere"].rows, held["kind", "Ampere"].inside) == (2, 0.5)
    assert ("alone", "older") not in held
