"""Softmax and its logarithm."""

from __future__ import annotations

from typing import ClassVar

from buddysim.training.autograd.cuda_scratch import cuda_scratch
from buddysim.training.autograd.dtypes import DType, float16, float32
from buddysim.training.autograd.node import Gradients, GraphNode
from buddysim.training.autograd.operators import copies
from buddysim.training.autograd.tensor import Tensor


class SoftmaxBackward0(GraphNode):
    """Saves the result; on CUDA its kernel has the gradient times the result in memory (``SoftMax.cu``)."""

    __slots__ = ("dtype",)
    name = "SoftmaxBackward0"
    kernel: ClassVar[str] = "_softmax_backward_data"

    def __init__(self, x: Tensor, result: Tensor) -> None:
        super().__init__(x.storage.tape, (x,))
        self.dtype = x.dtype
        self.returns(result)
        self.save_output("result", result)

    def backward(self, gradient: Tensor) -> Gradients:
        (result,) = self.saved
        made = self.tape.empty(result.shape, self.dtype, self.kernel)
        scratch = cuda_scratch(self.tape, self.kernel, gradient)
        self.tape.launch(self.kernel, (gradient, result), (made,))
        del scratch
        return (made,)


class LogSoftmaxBackward0(SoftmaxBackward0):
    __slots__ = ()
    name, kernel = "LogSoftmaxBackward0", "_log_softmax_backward_data"


def softmax(x: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """Softmax over a dimension; float16 to an fp32 result is one kernel, other casts are operations of their own."""
    return _softmax("_softmax", SoftmaxBackward0, x, dtype)


def log_softmax(x: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """The logarithm of a softmax."""
    return _softmax("_log_softmax", LogSoftmaxBackward0, x, dtype)


def _softmax(name: str, node_type: type[SoftmaxBackward0], x: Tensor, dtype: DType | None) -> Tensor:
    tape = x.storage.tape
    dtype = dtype or tape.single_type(x) or x.dtype
    if not (x.dtype is float16 and dtype is float32):
        x = copies.to(x, dtype)
    result = tape.empty(x.shape, dtype, name)
    tape.launch(name, (x,), (result,))
    if x.records:
        node_type(x, result)
    return result
