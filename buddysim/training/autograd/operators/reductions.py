"""Sums and means."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from buddysim.training.autograd.dtypes import DType, int64
from buddysim.training.autograd.layout import Shape, normalized
from buddysim.training.autograd.node import Gradients, GraphNode
from buddysim.training.autograd.operators import arithmetic, views
from buddysim.training.autograd.tensor import Tensor

Dimensions = int | Sequence[int] | None


def dimensions_of(x: Tensor, dim: Dimensions) -> tuple[int, ...]:
    """Dimensions counted from the front, in order; all if none is named."""
    if dim is None or dim == ():
        return tuple(range(len(x.shape)))
    listed = (dim,) if isinstance(dim, int) else dim
    return tuple(sorted(normalized(one, len(x.shape)) for one in listed))


def reduced(name: str, x: Tensor, dimensions: Sequence[int], keepdim: bool, dtype: DType) -> Tensor:
    """Record a reduction; its result is contiguous."""
    shape = tuple(
        [
            1 if position in dimensions else extent
            for position, extent in enumerate(x.shape)
            if keepdim or position not in dimensions
        ]
    )
    tape = x.storage.tape
    result = tape.empty(shape, dtype, name)
    tape.launch(name, (x,), (result,))
    return result


class SumBackward1(GraphNode):
    """Sums over some dimensions."""

    __slots__ = ("dimensions", "keepdim", "shape")
    name = "SumBackward1"

    def __init__(self, x: Tensor, dimensions: tuple[int, ...], keepdim: bool) -> None:
        super().__init__(x.storage.tape, (x,))
        self.dimensions, self.keepdim, self.shape = dimensions, keepdim, x.shape

    def backward(self, gradient: Tensor) -> Gradients:
        return (self.expanded(gradient),)

    def expanded(self, gradient: Tensor) -> Tensor:
        """The gradient in the operand's shape, without a copy."""
        if not self.keepdim and gradient.shape != self.shape and len(self.dimensions) < len(self.shape):
            for dimension in self.dimensions:
                gradient = views.unsqueeze(gradient, dimension)
        return views.expand(gradient, self.shape)


class SumBackward0(SumBackward1):
    """Sums of all elements."""

    __slots__ = ()
    name = "SumBackward0"


def sum_(x: Tensor, dim: Dimensions = None, keepdim: bool = False, dtype: DType | None = None) -> Tensor:
    """The sum over dimensions, of all if none is named; integers are summed as int64."""
    tape = x.storage.tape
    dimensions = dimensions_of(x, dim)
    if dtype is None:
        dtype = tape.single_type(x) or (x.dtype if x.dtype.is_floating_point else int64)
    result = reduced("sum", x, dimensions, keepdim, dtype)
    if x.records:
        (SumBackward0 if dim is None else SumBackward1)(x, dimensions, keepdim).returns(result)
    return result


def sum_to(x: Tensor, shape: Shape) -> Tensor:
    """Summed to a shape that was broadcast: the tensor itself where that is its shape."""
    if x.shape == shape:
        return x
    if not shape:
        return reduced("sum", x, range(len(x.shape)), False, x.dtype)
    missing = len(x.shape) - len(shape)
    dimensions = [
        position
        for position, extent in enumerate(x.shape)
        if position < missing or (shape[position - missing] == 1 and extent != 1)
    ]
    result = reduced("sum", x, dimensions, True, x.dtype) if dimensions else x
    return views.view(result, shape) if missing else result


class MeanBackward1(SumBackward1):
    """Means over some dimensions."""

    __slots__ = ()
    name = "MeanBackward1"

    def backward(self, gradient: Tensor) -> Gradients:
        expanded = self.expanded(gradient)
        return (arithmetic.div(expanded, prod([self.shape[one] for one in self.dimensions])),)


class MeanBackward0(MeanBackward1):
    """Means of all elements."""

    __slots__ = ()
    name = "MeanBackward0"


def mean(x: Tensor, dim: Dimensions = None, keepdim: bool = False, dtype: DType | None = None) -> Tensor:
    """The mean over dimensions, of all if none is named."""
    dimensions = dimensions_of(x, dim)
    result = reduced("mean", x, dimensions, keepdim, dtype or x.dtype)
    if x.records:
        (MeanBackward0 if dim is None else MeanBackward1)(x, dimensions, keepdim).returns(result)
    return result
