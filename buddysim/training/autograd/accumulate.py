"""The nodes at the end of the graph, which give leaves their gradients."""

from __future__ import annotations

import sys

from buddysim.training.autograd.layout import is_contiguous, is_dense
from buddysim.training.autograd.node import Gradients, GraphNode
from buddysim.training.autograd.operators import pointwise
from buddysim.training.autograd.tensor import Tensor


class AccumulateGrad(GraphNode):
    """Where the gradient of a leaf arrives; it runs before any other node that is ready."""

    __slots__ = ("__weakref__", "variable")
    name = "AccumulateGrad"

    def __init__(self, variable: Tensor) -> None:
        super().__init__(variable.storage.tape, ())
        self.tape.sequence -= 1
        self.sequence = sys.maxsize
        self.variable = variable
        self.outputs.append((variable.shape, variable.dtype))

    def run(self, gradients: list[Tensor | None]) -> Gradients:
        self._give(gradients)
        if self.variable.after_accumulate is not None:
            self.variable.after_accumulate(self.variable)
        return ()

    def _give(self, gradients: list[Tensor | None]) -> None:
        variable = self.variable
        if variable.grad is not None:
            new = gradients[0]
            assert new is not None
            pointwise.in_place("add_", variable.grad, new)
            return
        sole = sys.getrefcount(gradients[0]) == 2  # no other node gets this gradient too
        new = gradients[0]
        assert new is not None
        if sole and _obeys_layout(new, variable):
            variable.grad = new.detach()
        else:
            strides = variable.strides if is_dense(variable.shape, variable.strides) else None
            variable.grad = self.tape.empty(new.shape, new.dtype, "new_empty_strided", strides)
            self.tape.launch("copy_", (new,), (variable.grad,))
        record = variable.grad.storage.record
        if record.kind in ("temporary", "activation"):
            record.kind = "gradient"


def _obeys_layout(gradient: Tensor, variable: Tensor) -> bool:
    """Whether a gradient has the layout of its leaf (``grad_layout_contract.h``)."""
    if not is_dense(variable.shape, variable.strides):
        return is_contiguous(gradient.shape, gradient.strides)
    return all(
        stride == own if extent != 1 else stride != 0
        for extent, stride, own in zip(gradient.shape, gradient.strides, variable.strides, strict=True)
    )
