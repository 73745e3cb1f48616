"""Dropout as CUDA runs it: one kernel, and a mask of a byte an element."""

from __future__ import annotations

from buddysim.training.autograd.dtypes import bool8
from buddysim.training.autograd.layout import preserved_strides
from buddysim.training.autograd.node import Gradients, Node
from buddysim.training.autograd.operators.pointwise import pointwise
from buddysim.training.autograd.tensor import Tensor


class NativeDropoutBackward0(Node):
    __slots__ = ()
    name = "NativeDropoutBackward0"

    def backward(self, gradients: Gradients) -> Gradients:
        (gradient,), (mask,) = gradients, self.saved
        assert gradient is not None
        return (pointwise("native_dropout_backward", gradient, mask, dtype=gradient.dtype),)


def dropout(x: Tensor, probability: float, training: bool = True) -> Tensor:
    """The tensor itself where nothing is dropped."""
    if probability == 0 or not training:
        return x
    tape = x.storage.tape
    strides = preserved_strides(x.shape, x.strides)
    result = tape.empty(x.shape, x.dtype, "native_dropout", strides)
    mask = tape.empty(x.shape, bool8, "native_dropout", strides)
    tape.launch("native_dropout", (x,), (result, mask))
    if x.records:
        node = NativeDropoutBackward0(tape, (x,))
        node.returns(result)
        node.save("result1", mask, is_output=True)
    return result
