"""Functions whose gradient is one operation, which reads the operand or the result as each formula says."""

from __future__ import annotations

from typing import ClassVar

from buddysim.training.autograd.node import Gradients, GraphNode
from buddysim.training.autograd.operators.pointwise import pointwise, real
from buddysim.training.autograd.tensor import Tensor


class _Activation(GraphNode):
    __slots__ = ()
    kernel: ClassVar[str] = ""

    def __init__(self, x: Tensor) -> None:
        super().__init__(x.storage.tape, (x,))

    def backward(self, gradient: Tensor) -> Gradients:
        (saved,) = self.saved
        return (pointwise(self.kernel, gradient, saved),)


class SiluBackward0(_Activation):
    __slots__ = ()
    name, kernel = "SiluBackward0", "silu_backward"


class GeluBackward0(_Activation):
    __slots__ = ()
    name, kernel = "GeluBackward0", "gelu_backward"


class SoftplusBackward0(_Activation):
    __slots__ = ()
    name, kernel = "SoftplusBackward0", "softplus_backward"


class ReluBackward0(_Activation):
    __slots__ = ()
    name, kernel = "ReluBackward0", "threshold_backward"


class TanhBackward0(_Activation):
    __slots__ = ()
    name, kernel = "TanhBackward0", "tanh_backward"


class SigmoidBackward0(_Activation):
    __slots__ = ()
    name, kernel = "SigmoidBackward0", "sigmoid_backward"


def _of_input(name: str, node_type: type[_Activation], x: Tensor) -> Tensor:
    result = pointwise(name, x, dtype=real(x))
    if x.records:
        node = node_type(x)
        node.save("self", x)
        node.returns(result)
    return result


def _of_result(name: str, node_type: type[_Activation], x: Tensor) -> Tensor:
    result = pointwise(name, x, dtype=real(x))
    if x.records:
        node = node_type(x)
        node.returns(result)
        node.save_output("result", result)
    return result


def silu(x: Tensor) -> Tensor:
    return _of_input("silu", SiluBackward0, x)


def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """Exact or by tanh (`approximate`): both are one kernel and save the operand."""
    return _of_input("gelu", GeluBackward0, x)


def softplus(x: Tensor) -> Tensor:
    return _of_input("softplus", SoftplusBackward0, x.storage.tape.single(x))


def relu(x: Tensor) -> Tensor:
    return _of_result("relu", ReluBackward0, x)


def tanh(x: Tensor) -> Tensor:
    return _of_result("tanh", TanhBackward0, x)


def sigmoid(x: Tensor) -> Tensor:
    return _of_result("sigmoid", SigmoidBackward0, x)
