"""Sums along a dimension, sorting, counting, the largest elements."""

from __future__ import annotations

from buddysim.training.autograd.dtypes import DType, int64
from buddysim.training.autograd.layout import Shape, normalized, preserved_strides
from buddysim.training.autograd.node import Gradients, GraphNode
from buddysim.training.autograd.operators import arithmetic, copies, views
from buddysim.training.autograd.operators.fills import filled
from buddysim.training.autograd.operators.pointwise import pointwise
from buddysim.training.autograd.tensor import Tensor


class CumsumBackward0(GraphNode):
    """Sums of the gradient from behind."""

    __slots__ = ("dim", "dtype")
    name = "CumsumBackward0"

    def __init__(self, x: Tensor, dim: int, result: Tensor) -> None:
        super().__init__(x.storage.tape, (x,))
        self.dim, self.dtype = dim, x.dtype
        self.returns(result)

    def backward(self, gradient: Tensor) -> Gradients:
        gradient = copies.to(gradient, self.dtype)
        turned = pointwise("flip", gradient)
        summed = cumsum(turned, self.dim, turned.dtype)
        return (pointwise("flip", summed),)


def cumsum(x: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """Sums of all elements up to each one along a dimension; of integers as int64."""
    tape = x.storage.tape
    dtype = dtype or tape.single_type(x) or (x.dtype if x.dtype.is_floating_point else int64)
    result = tape.empty(x.shape, dtype, "cumsum", preserved_strides(x.shape, x.strides))
    tape.launch("cumsum", (x,), (result,))
    if x.records:
        CumsumBackward0(x, dim, result)
    return result


def diff(x: Tensor, prepend: Tensor) -> Tensor:
    """Differences of neighbours along the last dimension, after elements that are put in front."""
    joined = copies.cat((prepend, x), -1)
    extent = joined.shape[-1]
    second, first = views.slice_(joined, -1, 1, extent), views.slice_(joined, -1, 0, extent - 1)
    return arithmetic.sub(second, first)


def sort(x: Tensor) -> tuple[Tensor, Tensor]:
    """Elements in order along the last dimension, and where each came from. Without a gradient."""
    tape = x.storage.tape
    values = tape.empty(x.shape, x.dtype, "sort")
    indices = tape.empty(x.shape, int64, "sort")
    tape.launch("sort", (x,), (values, indices))
    return values, indices


def histc(x: Tensor, bins: int) -> Tensor:
    """How many elements are in each of `bins` intervals, in the elements' type."""
    tape = x.storage.tape
    result = tape.empty((bins,), x.dtype, "histc")
    tape.launch("histc", (x,), (result,))
    return result


class TopkBackward0(GraphNode):
    """Puts gradients of the largest elements where these were, in zeros."""

    __slots__ = ("dim", "shape")
    name = "TopkBackward0"

    def __init__(self, x: Tensor, dim: int, values: Tensor, indices: Tensor) -> None:
        super().__init__(x.storage.tape, (x,))
        self.dim, self.shape = dim, x.shape
        self.returns(values)
        self.save("indices", indices)

    def backward(self, gradient: Tensor) -> Gradients:
        (indices,) = self.saved
        return (_scattered(gradient, indices, self.shape),)


def _scattered(gradient: Tensor, indices: Tensor, shape: Shape) -> Tensor:
    result = filled(shape, gradient.dtype, "zeros", gradient.tape)
    gradient.tape.launch("scatter_", (result, indices, gradient), (result,))
    return result


def topk(x: Tensor, k: int, dim: int = -1) -> tuple[Tensor, Tensor]:
    """The `k` largest elements along a dimension, and where they are."""
    tape = x.storage.tape
    dim = normalized(dim, len(x.shape))
    shape = (*x.shape[:dim], k, *x.shape[dim + 1 :])
    values = tape.empty(shape, x.dtype, "topk")
    indices = tape.empty(shape, int64, "topk")
    tape.launch("topk", (x,), (values, indices))
    if x.records:
        TopkBackward0(x, dim, values, indices)
    return values, indices


class MaxBackward0(TopkBackward0):
    """Puts gradients of the largest elements where these were, in zeros."""

    __slots__ = ()
    name = "MaxBackward0"


def max_values(x: Tensor, dim: int) -> Tensor:
    """The largest element along a dimension, which stays as one of 1 (``x.max(dim, keepdim=True).values``)."""
    tape = x.storage.tape
    dim = normalized(dim, len(x.shape))
    shape = (*x.shape[:dim], 1, *x.shape[dim + 1 :])
    values, indices = tape.empty(shape, x.dtype, "max"), tape.empty(shape, int64, "max")
    tape.launch("max", (x,), (values, indices))
    if x.records:
        MaxBackward0(x, dim, values, indices)
    return values
