"""Writing tensors that are trained into parts of another one, as ``x[..., a:b] = y`` does."""

from __future__ import annotations

from buddysim.training.autograd.node import Gradients, GraphNode
from buddysim.training.autograd.operators import copies, fills, views
from buddysim.training.autograd.operators.pointwise import records
from buddysim.training.autograd.tensor import Tensor

#: A dimension, and an element of it, or the first one and the one behind the last.
Part = tuple[int, int | tuple[int, int]]


def _view(x: Tensor, part: Part) -> Tensor:
    dim, elements = part
    return views.select(x, dim, elements) if isinstance(elements, int) else views.slice_(x, dim, *elements)


class CopySlices(GraphNode):
    """Copies the whole gradient, whose part is then zeros: that part's gradient went to what was written there."""

    __slots__ = ("dtype", "part", "strides")
    name = "CopySlices"

    def __init__(self, x: Tensor, y: Tensor, part: Part) -> None:
        super().__init__(x.storage.tape, (x, y))
        self.part, self.dtype, self.strides = part, y.dtype, x.strides

    def backward(self, gradient: Tensor) -> Gradients:
        result = self.tape.empty(gradient.shape, gradient.dtype, "new_empty_strided", self.strides)
        self.tape.launch("copy_", (gradient,), (result,))
        inner = _view(result, self.part)
        copied = copies.clone(inner)
        zeros = fills.zeros_like(copied) if self.needs(0) else None
        written = copies.to(copied, self.dtype) if self.needs(1) else None
        if zeros is not None:
            self.tape.launch("copy_", (zeros,), (inner,))
        return result, written


def copy_into(x: Tensor, y: Tensor, dim: int, elements: int | tuple[int, int]) -> Tensor:
    """Write a tensor into elements of a dimension of another one, and return that.

    Parameters
    ----------
    elements : one, by its number, or the first and the one behind the last
    """
    x.storage.tape.launch("copy_", (y,), (_view(x, (dim, elements)),))
    if records(x, y):
        CopySlices(x, y, (dim, elements)).returns(x)
    return x
