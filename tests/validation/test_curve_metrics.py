"""Plateaus, capacity transitions and errors of curves."""

from __future__ import annotations

import math

import pytest

from buddysim.machine import Machine
from buddysim.validation.curve.metrics import absolute_errors, capacity_transition, levels, percentile, plateau_value

L1, L2, MEMORY = levels(Machine.load("v100"))


def curve(l1_end: float, l2_end: float) -> list[tuple[float, float]]:
    xs = [2.0 * 1.05**n for n in range(240)]
    return [(x, 28.0 if x < l1_end else 212.0 if x < l2_end else 430.0) for x in xs]


def test_plateau_is_the_median_of_its_level() -> None:
    assert [plateau_value(curve(130, 6200), level) for level in (L1, L2, MEMORY)] == [28, 212, 430]
    assert plateau_value(curve(130, 6200)[:20], MEMORY) is None


def test_capacity_transition_is_where_a_curve_crosses_the_midpoint() -> None:
    points = curve(140, 6700)
    assert capacity_transition(points, L1, L2, is_latency=True) == pytest.approx(140, rel=0.06)
    assert capacity_transition(points, L2, MEMORY, is_latency=True) == pytest.approx(6700, rel=0.06)
    slope = [(100.0, 28.0), *((140.0 * 1.1**n, 28 + 36.8 * n) for n in range(6)), (300.0, 212.0), (400.0, 212.0)]
    assert capacity_transition([(2.0, 28.0), *slope], L1, L2, is_latency=True) == pytest.approx(
        140 * 1.1**2.5, rel=1e-6
    )
    rates = [(x, 1e6 / y) for x, y in points]
    assert capacity_transition(rates, L2, MEMORY, is_latency=False) == pytest.approx(6700, rel=0.06)


def test_capacity_transition_needs_two_distinct_plateaus() -> None:
    flat = [(x, 200.0 if x < 128 else 212.0) for x, _ in curve(0, 0)]
    assert capacity_transition(flat, L1, L2, is_latency=True) is None
    assert capacity_transition([(x, y) for x, y in curve(130, 6200) if x < 6000], L2, MEMORY, is_latency=True) is None


def test_errors_are_unsigned_and_percentiles_are_ranks() -> None:
    assert absolute_errors([110, 90], [100, 100]) == pytest.approx([0.1, 0.1])
    assert [percentile([4.0, 1.0, 3.0, 2.0], fraction) for fraction in (0.5, 0.9, 1.0)] == [2.0, 4.0, 4.0]
    assert percentile([7.0], 0.5) == 7.0
    assert math.isinf(MEMORY.max_footprint)
