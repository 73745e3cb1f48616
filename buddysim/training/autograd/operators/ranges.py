"""Tensors of numbers that a program names: consecutive integers, one number, nothing yet."""

from __future__ import annotations

from collections.abc import Sequence

from buddysim.training.autograd.dtypes import DType, float32, int64
from buddysim.training.autograd.layout import preserved_strides
from buddysim.training.autograd.operators.fills import filled
from buddysim.training.autograd.tape import active_tape
from buddysim.training.autograd.tensor import Tensor


def arange(start: int, end: int | None = None, step: int = 1, dtype: DType = int64) -> Tensor:
    """Integers from `start`, or from 0 where `end` isn't named, to below the end."""
    if end is None:
        start, end = 0, start
    return filled((max(0, -((start - end) // step)),), dtype, "arange")


def full(shape: Sequence[int], dtype: DType = float32) -> Tensor:
    """One number everywhere."""
    return filled(tuple(shape), dtype, "full")


def full_like(x: Tensor) -> Tensor:
    """One number in a tensor's layout."""
    return filled(x.shape, x.dtype, "full_like", x.storage.tape, preserved_strides(x.shape, x.strides))


def empty(shape: Sequence[int], dtype: DType = float32) -> Tensor:
    """Memory without a kernel that writes it."""
    return active_tape().empty(tuple(shape), dtype, "empty")


def empty_like(x: Tensor) -> Tensor:
    """Memory in a tensor's layout."""
    return x.storage.tape.empty(x.shape, x.dtype, "empty_like", preserved_strides(x.shape, x.strides))


def new_empty(like: Tensor, shape: Sequence[int]) -> Tensor:
    """Memory for a tensor's type, without a kernel that writes it."""
    return like.storage.tape.empty(tuple(shape), like.dtype, "new_empty")


def new_zeros(like: Tensor, shape: Sequence[int]) -> Tensor:
    """Zeros of a tensor's type."""
    return filled(tuple(shape), like.dtype, "new_zeros", like.storage.tape)
