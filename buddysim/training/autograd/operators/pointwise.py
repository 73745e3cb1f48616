"""What element-wise operators have in common: types and layouts of results."""

from __future__ import annotations

from typing import TypeAlias

from buddysim.base.errors import BuddysimError
from buddysim.training.autograd.dtypes import DType, bool8, float32, int64, promoted
from buddysim.training.autograd.layout import broadcast, pointwise_strides
from buddysim.training.autograd.tensor import Number, Tensor

Operand: TypeAlias = Tensor | Number


def result_type(*operands: Operand) -> DType:
    """The type of an element-wise result: tensors with extents first, then those without, then Python's numbers."""
    best: list[DType | None] = [None, None, None]
    for one in operands:
        if isinstance(one, Tensor):
            level, dtype = (0 if one.shape else 1), one.dtype
        else:
            level, dtype = 2, bool8 if isinstance(one, bool) else int64 if isinstance(one, int) else float32
        current = best[level]
        best[level] = dtype if current is None else promoted(current, dtype)
    present = [one for one in best if one is not None]
    result = present[0]
    for candidate in present[1:]:
        if candidate.rank > result.rank:
            result = candidate
    return result


def pointwise(name: str, *operands: Operand, dtype: DType | None = None) -> Tensor:
    """Record an element-wise operation and return its result, of type `dtype` or the operands' common type."""
    tensors = [one for one in operands if isinstance(one, Tensor)]
    first = tensors[0]
    shape = first.shape
    for one in tensors:
        if one.shape != shape:
            shape = broadcast(shape, one.shape)
    tape = first.storage.tape
    result = tape.empty(
        shape,
        dtype or (first.dtype if len(operands) == 1 else result_type(*operands)),
        name,
        pointwise_strides(shape, tuple([(one.shape, one.strides) for one in tensors])),
    )
    tape.launch(name, tensors, (result,))
    return result


def in_place(name: str, x: Tensor, *others: Operand) -> Tensor:
    """Record an element-wise operation that writes into its first operand.

    Raises
    ------
    BuddysimError
        operands that don't broadcast to its shape
    NotImplementedError
        a view that autograd follows, whose base would get a new node as well
    """
    if x.is_view and records(x, *others):
        raise NotImplementedError(f"{name} on a view that needs a gradient")
    tensors = [one for one in others if isinstance(one, Tensor)]
    if any(broadcast(x.shape, one.shape) != x.shape for one in tensors):
        raise BuddysimError(f"{name} of a tensor of shape {x.shape} by shapes {[one.shape for one in tensors]}")
    x.storage.tape.launch(name, (x, *tensors), (x,))
    return x


def real(x: Tensor) -> DType:
    """The type of a function of real numbers: the operand's, single precision of integers."""
    return x.dtype if x.dtype.is_floating_point else float32


def records(*operands: Operand) -> bool:
    """Whether autograd records what reads these operands."""
    return any(isinstance(one, Tensor) and one.records for one in operands)
