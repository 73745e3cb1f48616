"""Writing tensors that are trained into parts of a new one, as ``x[..., a:b].copy_(y)`` does."""

from __future__ import annotations

from buddysim.training.autograd.node import Gradients, GraphNode
from buddysim.training.autograd.operators import copies, fills, views
from buddysim.training.autograd.operators.pointwise import records
from buddysim.training.autograd.tensor import Tensor


class CopySlices(GraphNode):
    """Copies the whole gradient, whose part is then zeros: that part's gradient went to what was written there."""

    __slots__ = ("dtype", "part")
    name = "CopySlices"

    def __init__(self, x: Tensor, y: Tensor, part: tuple[int, int]) -> None:
        super().__init__(x.storage.tape, (x, y))
        self.part, self.dtype = part, y.dtype

    def backward(self, gradient: Tensor) -> Gradients:
        result = self.tape.empty(gradient.shape, gradient.dtype, "new_empty_strided", gradient.strides)
        self.tape.launch("copy_", (gradient,), (result,))
        inner = views.slice_(result, -1, *self.part)
        copied = copies.clone(inner)
        zeros = fills.zeros_like(copied) if self.needs(0) else None
        written = copies.to(copied, self.dtype) if self.needs(1) else None
        if zeros is not None:
            self.tape.launch("copy_", (zeros,), (inner,))
        return result, written


def copy_into(x: Tensor, y: Tensor, start: int, end: int) -> Tensor:
    """Write a tensor into elements `start` to `end` of the last dimension of another one, and return that."""
    inner = views.slice_(x, -1, start, end)
    x.storage.tape.launch("copy_", (y,), (inner,))
    if records(x, y):
        CopySlices(x, y, (start, end)).returns(x)
    return x
