"""Operators that copy: clones, casts, joins, repetitions, and tensors filled with a number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from buddysim.training.autograd.dtypes import DType, promoted
from buddysim.training.autograd.layout import Shape, contiguous_strides, is_contiguous, normalized, preserved_strides
from buddysim.training.autograd.node import Gradients, Node
from buddysim.training.autograd.operators import reductions, views
from buddysim.training.autograd.tensor import Tensor

if TYPE_CHECKING:
    from buddysim.training.autograd.tape import Tape


def filled(tape: Tape, shape: Shape, dtype: DType, producer: str, strides: Shape | None = None) -> Tensor:
    """A tensor of one number, by the name of the operator that makes it."""
    result = tape.empty(shape, dtype, producer, strides)
    tape.launch(producer, (), (result,))
    return result


def zeros(tape: Tape, shape: Shape, dtype: DType) -> Tensor:
    return filled(tape, shape, dtype, "zeros")


def zeros_like(x: Tensor) -> Tensor:
    return filled(x.storage.tape, x.shape, x.dtype, "zeros_like", preserved_strides(x.shape, x.strides))


def scattered_into_zeros(gradient: Tensor, shape: Shape, producer: str) -> Tensor:
    """The gradient of a part of a tensor, in zeros of the tensor's shape."""
    tape = gradient.storage.tape
    result = tape.empty(shape, gradient.dtype, producer)
    tape.launch(producer, (gradient,), (result,))
    return result


class CloneBackward0(Node):
    __slots__ = ()
    name = "CloneBackward0"

    def backward(self, gradients: Gradients) -> Gradients:
        return gradients


def clone(x: Tensor, contiguous: bool = False) -> Tensor:
    """A copy, of the same layout unless `contiguous`."""
    tape = x.storage.tape
    strides = contiguous_strides(x.shape) if contiguous else preserved_strides(x.shape, x.strides)
    result = tape.empty(x.shape, x.dtype, "clone", strides)
    tape.launch("clone", (x,), (result,))
    if x.records:
        CloneBackward0(tape, (x,)).returns(result)
    return result


def contiguous(x: Tensor) -> Tensor:
    """The tensor itself where it is contiguous, else a copy that is."""
    return x if is_contiguous(x.shape, x.strides) else clone(x, contiguous=True)


class ToCopyBackward0(Node):
    __slots__ = ("dtype",)
    name = "ToCopyBackward0"

    def backward(self, gradients: Gradients) -> Gradients:
        (gradient,) = gradients
        return (to(gradient, self.dtype),)


def to(x: Tensor, dtype: DType) -> Tensor:
    """The tensor itself where it has the type, else a copy that has."""
    if x.dtype is dtype:
        return x
    tape = x.storage.tape
    result = tape.empty(x.shape, dtype, "_to_copy", preserved_strides(x.shape, x.strides))
    tape.launch("_to_copy", (x,), (result,))
    if x.records and dtype.is_floating_point:
        node = ToCopyBackward0(tape, (x,))
        node.dtype = x.dtype
        node.returns(result)
    return result


class CatBackward0(Node):
    __slots__ = ("dimension", "extents")
    name = "CatBackward0"

    def backward(self, gradients: Gradients) -> Gradients:
        (gradient,) = gradients
        results: list[Tensor | None] = []
        start = 0
        for position, extent in enumerate(self.extents):
            needed = self.needs(position)
            results.append(views.slice_(gradient, self.dimension, start, start + extent) if needed else None)
            start += extent
        return results


def cat(tensors: Sequence[Tensor], dimension: int = 0) -> Tensor:
    """Tensors joined along a dimension."""
    tape = tensors[0].storage.tape
    dimension = normalized(dimension, len(tensors[0].shape))
    dtype = tensors[0].dtype
    for one in tensors:
        dtype = promoted(dtype, one.dtype)
    extents = [one.shape[dimension] for one in tensors]
    shape = (*tensors[0].shape[:dimension], sum(extents), *tensors[0].shape[dimension + 1 :])
    result = tape.empty(shape, dtype, "cat")
    tape.launch("cat", tensors, (result,))
    if tape.grad_enabled and any(one.requires_grad for one in tensors):
        node = CatBackward0(tape, tensors)
        node.dimension, node.extents = dimension, extents
        node.returns(result)
    return result


class StackBackward0(Node):
    __slots__ = ("dimension",)
    name = "StackBackward0"

    def backward(self, gradients: Gradients) -> Gradients:
        (gradient,) = gradients
        return views.unbind(gradient, self.dimension)


def stack(tensors: Sequence[Tensor], dimension: int = 0) -> Tensor:
    """Tensors of one shape joined along a new dimension."""
    tape, first = tensors[0].storage.tape, tensors[0]
    dimension = normalized(dimension, len(first.shape) + 1)
    result = tape.empty((*first.shape[:dimension], len(tensors), *first.shape[dimension:]), first.dtype, "stack")
    tape.launch("stack", tensors, (result,))
    if tape.grad_enabled and any(one.requires_grad for one in tensors):
        node = StackBackward0(tape, tensors)
        node.dimension = dimension
        node.returns(result)
    return result


class RepeatBackward0(Node):
    __slots__ = ("repeats", "shape")
    name = "RepeatBackward0"

    def backward(self, gradients: Gradients) -> Gradients:
        (gradient,) = gradients
        missing = len(self.repeats) - len(self.shape)
        own = (*(1,) * missing, *self.shape)
        split = [extent for pair in zip(self.repeats, own, strict=True) for extent in pair]
        summed = [position * 2 for position in range(len(own))]
        parts = reductions.sum_(views.reshape(gradient, split), summed)
        return (views.reshape(parts, self.shape),)


def repeat(x: Tensor, repeats: Sequence[int]) -> Tensor:
    """Copies side by side."""
    tape = x.storage.tape
    own = (*(1,) * (len(repeats) - len(x.shape)), *x.shape)
    result = tape.empty(tuple([a * b for a, b in zip(own, repeats, strict=True)]), x.dtype, "repeat")
    tape.launch("repeat", (x,), (result,))
    if x.records:
        node = RepeatBackward0(tape, (x,))
        node.repeats, node.shape = tuple(repeats), x.shape
        node.returns(result)
    return result
