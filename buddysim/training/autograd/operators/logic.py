"""Comparisons, truth values and integers; none has a gradient."""

from __future__ import annotations

from buddysim.training.autograd.dtypes import bool8
from buddysim.training.autograd.operators.pointwise import Operand, pointwise
from buddysim.training.autograd.operators.reductions import reduced
from buddysim.training.autograd.tensor import Tensor


def eq(x: Tensor, y: Operand) -> Tensor:
    """``x == y``."""
    return pointwise("eq", x, y, dtype=bool8)


def ne(x: Tensor, y: Operand) -> Tensor:
    """``x != y``."""
    return pointwise("ne", x, y, dtype=bool8)


def logical_not(x: Tensor) -> Tensor:
    """``~x`` of truth values."""
    return pointwise("bitwise_not", x, dtype=bool8)


def bitwise_and(x: Tensor, y: Tensor) -> Tensor:
    """``x & y``."""
    return pointwise("bitwise_and", x, y)


def minimum(x: Tensor, y: Tensor) -> Tensor:
    """The smaller of each pair."""
    return pointwise("minimum", x, y)


def floor_divide(x: Tensor, y: Operand) -> Tensor:
    """``x // y``."""
    return pointwise("floor_divide", x, y)


def all_(x: Tensor) -> Tensor:
    """Whether all elements are true."""
    return reduced("all", x, tuple(range(len(x.shape))), False, bool8)


def max_(x: Tensor) -> Tensor:
    """The largest element."""
    return reduced("max", x, tuple(range(len(x.shape))), False, x.dtype)


def tril(x: Tensor, diagonal: int = 0) -> Tensor:
    """The lower triangle, zeros above."""
    return pointwise("tril", x)


def triu(x: Tensor, diagonal: int = 0) -> Tensor:
    """The upper triangle, zeros below."""
    return pointwise("triu", x)


def floor(x: Tensor) -> Tensor:
    """The next integer below."""
    return pointwise("floor", x)


def log1p(x: Tensor) -> Tensor:
    """``log(1 + x)``."""
    return pointwise("log1p", x)
