"""Functions of one operand whose formulas are several operations."""

from __future__ import annotations

from math import pi
from math import sqrt as root

from buddysim.training.autograd.node import Gradients, GraphNode
from buddysim.training.autograd.operators import arithmetic, fills
from buddysim.training.autograd.operators.pointwise import in_place, pointwise, real
from buddysim.training.autograd.tensor import Number, Tensor


class _OfInput(GraphNode):
    """A formula that reads the operand."""

    __slots__ = ()

    def __init__(self, x: Tensor, result: Tensor) -> None:
        super().__init__(x.storage.tape, (x,))
        self.save("self", x)
        self.returns(result)


class _OfResult(GraphNode):
    """A formula that reads the result."""

    __slots__ = ()

    def __init__(self, x: Tensor, result: Tensor) -> None:
        super().__init__(x.storage.tape, (x,))
        self.returns(result)
        self.save_output("result", result)


class NegBackward0(GraphNode):
    __slots__ = ()
    name = "NegBackward0"

    def backward(self, gradient: Tensor) -> Gradients:
        return (neg(gradient),)


def neg(x: Tensor) -> Tensor:
    """``-x``."""
    result = pointwise("neg", x)
    if x.records:
        NegBackward0(x.storage.tape, (x,)).returns(result)
    return result


class AbsBackward0(_OfInput):
    __slots__ = ()
    name = "AbsBackward0"

    def backward(self, gradient: Tensor) -> Gradients:
        (x,) = self.saved
        sign = pointwise("sgn", x)
        return (arithmetic.mul(gradient, sign),)


def abs_(x: Tensor) -> Tensor:
    """The absolute value."""
    result = pointwise("abs", x)
    if x.records:
        AbsBackward0(x, result)
    return result


class SqrtBackward0(_OfResult):
    __slots__ = ()
    name = "SqrtBackward0"

    def backward(self, gradient: Tensor) -> Gradients:
        (result,) = self.saved
        twice = arithmetic.mul(result, 2)
        return (arithmetic.div(gradient, twice),)


def sqrt(x: Tensor) -> Tensor:
    """The square root."""
    result = pointwise("sqrt", x, dtype=real(x))
    if x.records:
        SqrtBackward0(x, result)
    return result


class RsqrtBackward0(_OfResult):
    __slots__ = ()
    name = "RsqrtBackward0"

    def backward(self, gradient: Tensor) -> Gradients:
        (result,) = self.saved
        cube = arithmetic.pow_(result, 3)
        scaled = arithmetic.mul(gradient, -0.5)
        return (arithmetic.mul(scaled, cube),)


def rsqrt(x: Tensor) -> Tensor:
    """One over the square root."""
    x = x.storage.tape.single(x)
    result = pointwise("rsqrt", x, dtype=real(x))
    if x.records:
        RsqrtBackward0(x, result)
    return result


class ReciprocalBackward0(_OfResult):
    __slots__ = ()
    name = "ReciprocalBackward0"

    def backward(self, gradient: Tensor) -> Gradients:
        (result,) = self.saved
        square_ = arithmetic.mul(result, result)
        negated = neg(gradient)
        return (arithmetic.mul(negated, square_),)


def reciprocal(x: Tensor) -> Tensor:
    """One over the operand."""
    x = x.storage.tape.single(x)
    result = pointwise("reciprocal", x, dtype=real(x))
    if x.records:
        ReciprocalBackward0(x, result)
    return result


def square(x: Tensor) -> Tensor:
    """``x ** 2``, as PyTorch writes it."""
    return arithmetic.pow_(x, 2)


class CosBackward0(_OfInput):
    __slots__ = ()
    name = "CosBackward0"

    def backward(self, gradient: Tensor) -> Gradients:
        (x,) = self.saved
        sine = sin(x)
        negated = neg(sine)
        return (arithmetic.mul(gradient, negated),)


def cos(x: Tensor) -> Tensor:
    result = pointwise("cos", x, dtype=real(x))
    if x.records:
        CosBackward0(x, result)
    return result


class SinBackward0(_OfInput):
    __slots__ = ()
    name = "SinBackward0"

    def backward(self, gradient: Tensor) -> Gradients:
        (x,) = self.saved
        cosine = cos(x)
        return (arithmetic.mul(gradient, cosine),)


def sin(x: Tensor) -> Tensor:
    result = pointwise("sin", x, dtype=real(x))
    if x.records:
        SinBackward0(x, result)
    return result


class ExpBackward0(_OfResult):
    __slots__ = ()
    name = "ExpBackward0"

    def backward(self, gradient: Tensor) -> Gradients:
        (result,) = self.saved
        return (arithmetic.mul(gradient, result),)


def exp(x: Tensor) -> Tensor:
    x = x.storage.tape.single(x)
    result = pointwise("exp", x, dtype=real(x))
    if x.records:
        ExpBackward0(x, result)
    return result


class LogBackward0(_OfInput):
    __slots__ = ()
    name = "LogBackward0"

    def backward(self, gradient: Tensor) -> Gradients:
        (x,) = self.saved
        return (arithmetic.div(gradient, x),)


def log(x: Tensor) -> Tensor:
    x = x.storage.tape.single(x)
    result = pointwise("log", x, dtype=real(x))
    if x.records:
        LogBackward0(x, result)
    return result


class ErfBackward0(_OfInput):
    __slots__ = ()
    name = "ErfBackward0"

    def backward(self, gradient: Tensor) -> Gradients:
        (x,) = self.saved
        power = arithmetic.pow_(x, 2)
        negated = neg(power)
        density = exp(negated)
        scaled = arithmetic.mul(density, 2 / root(pi))
        return (arithmetic.mul(scaled, gradient),)


def erf(x: Tensor) -> Tensor:
    result = pointwise("erf", x, dtype=real(x))
    if x.records:
        ErfBackward0(x, result)
    return result


class ClampBackward1(_OfInput):
    __slots__ = ("limits",)
    name = "ClampBackward1"
    limits: list[tuple[str, Number]]

    def backward(self, gradient: Tensor) -> Gradients:
        (x,) = self.saved
        zero = fills.filled((), gradient.dtype, "scalar_tensor", self.tape)
        inside, *others = [arithmetic.compare(name, x, limit) for name, limit in self.limits]
        for one in others:
            in_place("logical_and_", inside, one)
        return (pointwise("where", inside, gradient, zero, dtype=gradient.dtype),)


def clamp(x: Tensor, min: Number | None = None, max: Number | None = None) -> Tensor:
    """The nearest number within limits."""
    result = pointwise("clamp", x)
    if x.records:
        ClampBackward1(x, result).limits = [
            (name, limit) for name, limit in (("ge", min), ("le", max)) if limit is not None
        ]
    return result
