"""Sums and means."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from buddysim.training.autograd.dtypes import DType, int64
from buddysim.training.autograd.layout import Shape, normalized
from buddysim.training.autograd.node import Gradients, Node
from buddysim.training.autograd.operators import pointwise, views
from buddysim.training.autograd.tensor import Tensor

Dimensions = int | Sequence[int] | None


def _dimensions(x: Tensor, dimensions: Dimensions) -> tuple[int, ...]:
    if dimensions is None or dimensions == ():
        return tuple(range(len(x.shape)))
    listed = (dimensions,) if isinstance(dimensions, int) else dimensions
    return tuple(sorted(normalized(one, len(x.shape)) for one in listed))


def reduced(name: str, x: Tensor, dimensions: tuple[int, ...], keep: bool, dtype: DType) -> Tensor:
    """Record a reduction; its result is contiguous."""
    shape = tuple(
        1 if position in dimensions else extent
        for position, extent in enumerate(x.shape)
        if keep or position not in dimensions
    )
    tape = x.storage.tape
    result = tape.empty(shape, dtype, name)
    tape.launch(name, (x,), (result,))
    return result


class SumBackward1(Node):
    __slots__ = ("dimensions", "keep", "shape")
    name = "SumBackward1"

    def backward(self, gradients: Gradients) -> Gradients:
        (gradient,) = gradients
        return (views.expand(self.unsqueezed(gradient), self.shape),)

    def unsqueezed(self, gradient: Tensor) -> Tensor:
        """The gradient with the reduced dimensions, of extent 1."""
        if not self.keep:
            for dimension in self.dimensions:
                gradient = views.unsqueeze(gradient, dimension)
        return gradient


class SumBackward0(SumBackward1):
    name = "SumBackward0"

    def backward(self, gradients: Gradients) -> Gradients:
        (gradient,) = gradients
        return (views.expand(gradient, self.shape),)


def sum_(x: Tensor, dimensions: Dimensions = None, keep: bool = False, dtype: DType | None = None) -> Tensor:
    """The sum over dimensions, all of them if none is named; integers are summed as int64."""
    tape = x.storage.tape
    listed = _dimensions(x, dimensions)
    if dtype is None and tape.autocast is not None:
        dtype = tape.single_type(x)
    dtype = dtype or (x.dtype if x.dtype.is_floating_point else int64)
    result = reduced("sum", x, listed, keep, dtype)
    if x.records:
        node = (SumBackward0 if dimensions is None else SumBackward1)(tape, (x,))
        node.dimensions, node.keep, node.shape = listed, keep, x.shape
        node.returns(result)
    return result


def sum_to(x: Tensor, shape: Shape) -> Tensor:
    """Summed to a shape that was broadcast: the tensor itself where that is its shape."""
    if x.shape == shape:
        return x
    missing = len(x.shape) - len(shape)
    dimensions = [
        position
        for position, extent in enumerate(x.shape)
        if position < missing or (shape[position - missing] == 1 and extent != 1)
    ]
    result = reduced("sum", x, tuple(dimensions), True, x.dtype) if dimensions else x
    return views.view(result, shape) if missing else result


class MeanBackward1(SumBackward1):
    name = "MeanBackward1"

    def backward(self, gradients: Gradients) -> Gradients:
        (gradient,) = gradients
        expanded = views.expand(self.unsqueezed(gradient), self.shape)
        return (pointwise.div(expanded, prod([self.shape[one] for one in self.dimensions])),)


class MeanBackward0(SumBackward1):
    name = "MeanBackward0"

    def backward(self, gradients: Gradients) -> Gradients:
        (gradient,) = gradients
        expanded = views.expand(gradient, self.shape)
        return (pointwise.div(expanded, prod(self.shape)),)


def mean(x: Tensor, dimensions: Dimensions = None, keep: bool = False, dtype: DType | None = None) -> Tensor:
    """The mean over dimensions, all of them if none is named."""
    listed = _dimensions(x, dimensions)
    result = reduced("mean", x, listed, keep, dtype or x.dtype)
    if x.records:
        node = (MeanBackward0 if dimensions is None else MeanBackward1)(x.storage.tape, (x,))
        node.dimensions, node.keep, node.shape = listed, keep, x.shape
        node.returns(result)
    return result
