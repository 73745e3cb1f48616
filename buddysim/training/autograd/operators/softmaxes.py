"""Softmax and its logarithm."""

from __future__ import annotations

from buddysim.training.autograd.dtypes import DType, float16, float32
from buddysim.training.autograd.layout import contiguous_strides
from buddysim.training.autograd.node import Gradients, Node
from buddysim.training.autograd.operators import copies
from buddysim.training.autograd.tensor import Tensor


class SoftmaxBackward0(Node):
    __slots__ = ("dtype",)
    name, kernel = "SoftmaxBackward0", "_softmax_backward_data"

    def backward(self, gradients: Gradients) -> Gradients:
        (gradient,) = gradients
        (result,) = self.saved
        made = self.tape.empty(result.shape, self.dtype, self.kernel)
        self.tape.launch(self.kernel, (gradient, result), (made,))
        return (made,)


class LogSoftmaxBackward0(SoftmaxBackward0):
    name, kernel = "LogSoftmaxBackward0", "_log_softmax_backward_data"


def softmax(x: Tensor, dimension: int, dtype: DType | None = None) -> Tensor:
    """Softmax over a dimension; of half precision with an fp32 result in one kernel."""
    return _softmax("_softmax", SoftmaxBackward0, x, dtype)


def log_softmax(x: Tensor, dimension: int, dtype: DType | None = None) -> Tensor:
    """The logarithm of a softmax."""
    return _softmax("_log_softmax", LogSoftmaxBackward0, x, dtype)


def _softmax(name: str, node_type: type[SoftmaxBackward0], x: Tensor, dtype: DType | None) -> Tensor:
    tape = x.storage.tape
    if dtype is None and tape.autocast is not None:
        dtype = tape.single_type(x)
    if dtype is not None and dtype is not x.dtype and not (x.dtype is float16 and dtype is float32):
        x = copies.to(x, dtype)
    result = tape.empty(x.shape, dtype or x.dtype, name, contiguous_strides(x.shape))
    tape.launch(name, (x,), (result,))
    if x.records:
        node = node_type(tape, (x,))
        node.dtype = x.dtype
        node.returns(result)
        node.save("result", result, is_output=True)
    return result
