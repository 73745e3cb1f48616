"""Strides of results, next to those that PyTorch gives its own."""

from __future__ import annotations

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.training.autograd.layout import normalized, pointwise_strides


def test_dimensions_that_no_operand_orders_keep_their_order() -> None:
    """``torch.empty_strided((2, 1, 2), (1, 1, 2)) + torch.empty(1, 1, 2)`` has the first one's strides."""
    assert pointwise_strides((2, 1, 2), (((2, 1, 2), (1, 1, 2)), ((1, 1, 2), (2, 2, 1)))) == (1, 1, 2)


def test_a_dimension_is_counted_from_either_end() -> None:
    assert [normalized(one, 2) for one in (-2, -1, 0, 1)] == [0, 1, 0, 1]
    assert [normalized(one, 0) for one in (-1, 0)] == [-1, 0]  # a number counts as one dimension
    for wrong, dimensions in ((2, 2), (-3, 2), (1, 1), (-2, 1), (1, 0), (-2, 0)):
        with pytest.raises(BuddysimError, match=f"dimension {wrong} of a tensor of {dimensions}"):
            normalized(wrong, dimensions)
