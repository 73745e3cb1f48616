"""Dropout as CUDA runs it: one kernel, and a mask of a byte an element (``aten/src/ATen/native/Dropout.cpp``)."""

from __future__ import annotations

from buddysim.training.autograd.dtypes import bool8
from buddysim.training.autograd.layout import preserved_strides
from buddysim.training.autograd.node import Gradients, GraphNode
from buddysim.training.autograd.operators.pointwise import pointwise
from buddysim.training.autograd.tensor import Tensor


class NativeDropoutBackward0(GraphNode):
    __slots__ = ()
    name = "NativeDropoutBackward0"

    def __init__(self, x: Tensor, result: Tensor, mask: Tensor) -> None:
        super().__init__(x.storage.tape, (x,))
        self.returns(result)
        self.save_output("result1", mask)

    def backward(self, gradient: Tensor) -> Gradients:
        (mask,) = self.saved
        return (pointwise("native_dropout_backward", gradient, mask, dtype=gradient.dtype),)


def dropout(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """The tensor itself where nothing is dropped."""
    if p == 0 or not training:
        return x
    tape = x.storage.tape
    strides = preserved_strides(x.shape, x.strides)
    result = tape.empty(x.shape, x.dtype, "native_dropout", strides)
    mask = tape.empty(x.shape, bool8, "native_dropout", strides)
    tape.launch("native_dropout", (x,), (result, mask))
    if x.records:
        NativeDropoutBackward0(x, result, mask)
    return result
