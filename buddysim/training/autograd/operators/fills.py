"""Tensors that are filled with numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from buddysim.training.autograd import tape as tapes
from buddysim.training.autograd.dtypes import DType, float32
from buddysim.training.autograd.layout import Shape, preserved_strides
from buddysim.training.autograd.tensor import Tensor

if TYPE_CHECKING:
    from buddysim.training.autograd.tape import Tape


def filled(shape: Shape, dtype: DType, producer: str, tape: Tape | None = None, strides: Shape | None = None) -> Tensor:
    """A tensor of numbers, by the name of the operator that makes it; the active tape's if none is named."""
    tape = tape or tapes.active_tape()
    result = tape.empty(shape, dtype, producer, strides)
    tape.launch(producer, (), (result,))
    return result


def zeros(shape: Sequence[int], dtype: DType = float32, tape: Tape | None = None) -> Tensor:
    return filled(tuple(shape), dtype, "zeros", tape)


def ones(shape: Sequence[int], dtype: DType = float32, tape: Tape | None = None) -> Tensor:
    return filled(tuple(shape), dtype, "ones", tape)


def zeros_like(x: Tensor) -> Tensor:
    """Zeros in a tensor's layout."""
    return filled(x.shape, x.dtype, "zeros_like", x.storage.tape, preserved_strides(x.shape, x.strides))


def new_ones(x: Tensor, shape: Sequence[int], dtype: DType) -> Tensor:
    """A tensor of ones, by the name of a tensor's method."""
    return filled(tuple(shape), dtype, "new_ones", x.storage.tape)


def ones_like(x: Tensor) -> Tensor:
    """Ones in a tensor's layout."""
    return filled(x.shape, x.dtype, "ones_like", x.storage.tape, preserved_strides(x.shape, x.strides))


def padded_with_zeros(gradient: Tensor, shape: Shape, producer: str) -> Tensor:
    """The gradient of a part of a tensor, in zeros of the tensor's shape."""
    tape = gradient.storage.tape
    result = tape.empty(shape, gradient.dtype, producer)
    tape.launch(producer, (gradient,), (result,))
    return result
