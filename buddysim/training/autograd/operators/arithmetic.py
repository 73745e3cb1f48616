"""Sums, products, quotients and powers of elements."""

from __future__ import annotations

from buddysim.training.autograd.dtypes import bool8, float32
from buddysim.training.autograd.node import Gradients, GraphNode
from buddysim.training.autograd.operators import copies, fills, functions
from buddysim.training.autograd.operators.pointwise import Operand, in_place, pointwise, records, result_type
from buddysim.training.autograd.tensor import Number, Tensor


class AddBackward0(GraphNode):
    __slots__ = ("alpha",)
    name = "AddBackward0"

    def __init__(self, result: Tensor, x: Operand, y: Operand, alpha: Number) -> None:
        super().__init__(result.storage.tape, (x, y))
        self.alpha = alpha
        self.returns(result)

    def backward(self, gradient: Tensor) -> Gradients:
        scaled = gradient if self.alpha == 1 or not self.needs(1) else mul(gradient, self.alpha)
        return gradient, scaled


def add(x: Operand, y: Operand, alpha: Number = 1) -> Tensor:
    """``x + alpha * y``."""
    result = pointwise("add", x, y)
    if records(x, y):
        AddBackward0(result, x, y, alpha)
    return result


def add_(x: Tensor, y: Operand) -> Tensor:
    """``x += y``."""
    in_place("add_", x, y)
    if records(x, y):
        AddBackward0(x, x, y, 1)
    return x


class SubBackward0(GraphNode):
    __slots__ = ()
    name = "SubBackward0"

    def backward(self, gradient: Tensor) -> Gradients:
        return gradient, functions.neg(gradient) if self.needs(1) else None


class RsubBackward1(GraphNode):
    __slots__ = ()
    name = "RsubBackward1"

    def backward(self, gradient: Tensor) -> Gradients:
        return (functions.neg(gradient),)


def sub(x: Operand, y: Operand) -> Tensor:
    """``x - y``."""
    if not isinstance(x, Tensor):
        assert isinstance(y, Tensor)
        result = pointwise("rsub", y, x)
        if y.records:
            RsubBackward1(y.storage.tape, (y,)).returns(result)
        return result
    result = pointwise("sub", x, y)
    if records(x, y):
        SubBackward0(x.storage.tape, (x, y)).returns(result)
    return result


class MulBackward0(GraphNode):
    """Saves each factor that the other one's gradient needs."""

    __slots__ = ()
    name = "MulBackward0"

    def __init__(self, x: Operand, y: Operand, result: Tensor) -> None:
        super().__init__(result.storage.tape, (x, y))
        self.save("self", x, self.needs(1))
        self.save("other", y, self.needs(0))
        self.returns(result)

    def backward(self, gradient: Tensor) -> Gradients:
        x, y = self.saved
        second = mul(gradient, x) if self.needs(1) else None
        first = mul(gradient, y) if self.needs(0) else None
        return first, second


def mul(x: Operand, y: Operand) -> Tensor:
    """``x * y``."""
    result = pointwise("mul", x, y)
    if records(x, y):
        MulBackward0(x, y, result)
    return result


def mul_(x: Tensor, y: Operand) -> Tensor:
    """``x *= y``."""
    before = _before(x, y)
    in_place("mul_", x, y)
    if records(x, y):
        MulBackward0(before, y, x)
    return x


def _before(x: Tensor, y: Operand) -> Tensor:
    """The operand that an operation overwrites, as its formula needs it: copied where the other's gradient reads it."""
    if isinstance(y, Tensor) and y.records:
        with x.storage.tape.no_grad():
            copied = copies.clone(x)
        copied.node, copied.output, copied.requires_grad = x.node, x.output, x.requires_grad
        return copied
    return x


class DivBackward0(GraphNode):
    """Saves the divisor, and the dividend where the divisor needs a gradient."""

    __slots__ = ()
    name = "DivBackward0"

    def __init__(self, x: Tensor, y: Operand, result: Tensor) -> None:
        super().__init__(result.storage.tape, (x, y))
        self.save("self", x, self.needs(1))
        self.save("other", y)
        self.returns(result)

    def backward(self, gradient: Tensor) -> Gradients:
        x, y = self.saved
        second = self._of_divisor(gradient, x, y) if self.needs(1) else None
        first = div(gradient, y) if self.needs(0) else None
        return first, second

    @staticmethod
    def _of_divisor(gradient: Tensor, x: Tensor, y: Operand) -> Tensor:
        ratio = div(x, y)
        twice = div(ratio, y)
        negated = functions.neg(gradient)
        return mul(negated, twice)


def div(x: Operand, y: Operand) -> Tensor:
    """``x / y``; a number by a tensor is the tensor's reciprocal times the number."""
    if not isinstance(x, Tensor):
        assert isinstance(y, Tensor)
        return mul(functions.reciprocal(y), x)
    dtype = result_type(x, y)
    result = pointwise("div", x, y, dtype=dtype if dtype.is_floating_point else float32)
    if records(x, y):
        DivBackward0(x, y, result)
    return result


def div_(x: Tensor, y: Operand) -> Tensor:
    """``x /= y``."""
    before = _before(x, y)
    in_place("div_", x, y)
    if records(x, y):
        DivBackward0(before, y, x)
    return x


class PowBackward0(GraphNode):
    __slots__ = ("exponent",)
    name = "PowBackward0"

    def __init__(self, x: Tensor, exponent: Number, result: Tensor) -> None:
        super().__init__(x.storage.tape, (x,))
        self.exponent = exponent
        self.save("self", x)
        self.returns(result)

    def backward(self, gradient: Tensor) -> Gradients:
        (x,) = self.saved
        if self.exponent == 0:
            return (fills.zeros_like(x),)
        power = pow_(x, self.exponent - 1)
        scaled = mul(power, float(self.exponent))
        return (mul(gradient, scaled),)


def pow_(x: Tensor, exponent: Number) -> Tensor:
    """``x ** exponent``, of a number of Python's."""
    x = x.storage.tape.single(x)
    result = pointwise("pow", x, exponent)
    if x.records:
        PowBackward0(x, exponent, result)
    return result


def compare(name: str, x: Tensor, y: Operand) -> Tensor:
    """Truth values of a comparison, by PyTorch's name: ``"ge"``."""
    return pointwise(name, x, y, dtype=bool8)
