"""The least memory of a program of two groups."""

from __future__ import annotations

import pytest

from buddysim.training.fitting.integer_program import min_memory
from buddysim.training.fitting.mixed_program import solve_with_scipy
from tests.training.fitting.test_ladders import inputs_of

MIB = 1 << 20


def test_the_smallest_memory_is_that_of_the_smallest_choices() -> None:
    """Either of two groups holds 100, 40 or 60 MiB."""
    inputs = inputs_of([[100 * MIB, 40 * MIB, 60 * MIB]] * 2, [[0, 3, 1]] * 2)
    answer = min_memory(inputs, None, solve_with_scipy)
    assert answer.choices == (1, 1)
    assert answer.bound == pytest.approx(80 * MIB, rel=1e-5)
