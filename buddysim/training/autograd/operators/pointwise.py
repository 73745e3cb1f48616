"""Element-wise arithmetic, by PyTorch's rules for types and layouts of results."""

from __future__ import annotations

from buddysim.training.autograd.dtypes import DType, bool8, float32, int64, promoted
from buddysim.training.autograd.layout import broadcast, pointwise_strides
from buddysim.training.autograd.node import Gradients, Node
from buddysim.training.autograd.operators import copies
from buddysim.training.autograd.tensor import Number, Tensor

Operandlike = Tensor | Number


def result_type(*operands: Operandlike) -> DType:
    """The type of an element-wise result: tensors with extents first, then those without, then Python's numbers."""
    best: list[DType | None] = [None, None, None]
    for one in operands:
        if isinstance(one, Tensor):
            level, dtype = (0 if one.shape else 1), one.dtype
        else:
            level, dtype = 2, bool8 if isinstance(one, bool) else int64 if isinstance(one, int) else float32
        current = best[level]
        best[level] = dtype if current is None else promoted(current, dtype)
    result = next(one for one in best if one is not None)
    for one in best:
        if one is not None and one.rank > result.rank:
            result = one
    return result


def pointwise(name: str, *operands: Operandlike, dtype: DType | None = None) -> Tensor:
    """Record an element-wise operation and return its result, of type `dtype` or the inputs' common type."""
    tensors = [one for one in operands if isinstance(one, Tensor)]
    first = tensors[0]
    shape = first.shape
    for one in tensors[1:]:
        shape = broadcast(shape, one.shape)
    tape = first.storage.tape
    result = tape.empty(
        shape,
        dtype or (first.dtype if len(operands) == 1 else result_type(*operands)),
        name,
        pointwise_strides(shape, tuple([(one.shape, one.strides) for one in tensors])),
    )
    tape.launch(name, tensors, (result,))
    return result


def in_place(name: str, x: Tensor, *others: Operandlike) -> Tensor:
    """Record an element-wise operation that writes into its first input."""
    x.storage.tape.launch(name, (x, *[one for one in others if isinstance(one, Tensor)]), (x,))
    return x


def _records(*operands: Operandlike) -> bool:
    return any(isinstance(one, Tensor) and one.records for one in operands)


def _inputs(*operands: Operandlike) -> list[Tensor | None]:
    return [one if isinstance(one, Tensor) else None for one in operands]


class AddBackward0(Node):
    __slots__ = ("scale",)
    name = "AddBackward0"

    def backward(self, gradients: Gradients) -> Gradients:
        (gradient,) = gradients
        other = gradient if self.needs(1) else None
        if other is not None and self.scale != 1:
            other = mul(gradient, self.scale)
        return gradient if self.needs(0) else None, other


def _tape_of(*operands: Operandlike) -> object:
    return next(one for one in operands if isinstance(one, Tensor)).storage.tape


def add(x: Operandlike, y: Operandlike, scale: Number = 1) -> Tensor:
    """``x + scale * y``."""
    result = pointwise("add", x, y)
    if _records(x, y):
        node = AddBackward0(result.storage.tape, _inputs(x, y))
        node.scale = scale
        node.returns(result)
    return result


def add_(x: Tensor, y: Operandlike) -> Tensor:
    """``x += y``."""
    in_place("add_", x, y)
    if _records(x, y):
        node = AddBackward0(x.storage.tape, _inputs(x, y))
        node.scale = 1
        node.returns(x)
    return x


class SubBackward0(Node):
    __slots__ = ()
    name = "SubBackward0"

    def backward(self, gradients: Gradients) -> Gradients:
        (gradient,) = gradients
        other = neg(gradient) if self.needs(1) else None
        return gradient if self.needs(0) else None, other


class RsubBackward1(SubBackward0):
    name = "RsubBackward1"

    def backward(self, gradients: Gradients) -> Gradients:
        (gradient,) = gradients
        return None, neg(gradient)


def sub(x: Operandlike, y: Operandlike) -> Tensor:
    """``x - y``."""
    reverse = not isinstance(x, Tensor)
    result = pointwise("rsub" if reverse else "sub", x, y)
    if _records(x, y):
        (RsubBackward1 if reverse else SubBackward0)(result.storage.tape, _inputs(x, y)).returns(result)
    return result


class MulBackward0(Node):
    """Saves each factor that the other one's gradient needs."""

    __slots__ = ("factors",)
    name = "MulBackward0"

    def __init__(self, x: Operandlike, y: Operandlike, result: Tensor) -> None:
        super().__init__(result.storage.tape, _inputs(x, y))
        self.factors: list[Operandlike | None] = [None, None]
        for needed, position, label in ((1, 0, "self"), (0, 1, "other")):
            factor = (x, y)[position]
            if self.needs(needed):
                if isinstance(factor, Tensor):
                    self.save(label, factor)
                self.factors[position] = factor
        self.returns(result)

    def release(self) -> None:
        super().release()
        self.factors = []

    def backward(self, gradients: Gradients) -> Gradients:
        (gradient,) = gradients
        x, y = self.factors
        second = mul(gradient, x) if x is not None else None
        first = mul(gradient, y) if y is not None else None
        return first, second


def mul(x: Operandlike, y: Operandlike) -> Tensor:
    """``x * y``."""
    result = pointwise("mul", x, y)
    if _records(x, y):
        MulBackward0(x, y, result)
    return result


class NegBackward0(Node):
    __slots__ = ()
    name = "NegBackward0"

    def backward(self, gradients: Gradients) -> Gradients:
        (gradient,) = gradients
        return (neg(gradient),)


def neg(x: Tensor) -> Tensor:
    """``-x``."""
    result = pointwise("neg", x)
    if x.records:
        NegBackward0(x.storage.tape, (x,)).returns(result)
    return result


def floating(x: Tensor) -> DType:
    """The type of a function of real numbers: the input's, or single precision of integers."""
    return x.dtype if x.dtype.is_floating_point else float32


class DivBackward0(Node):
    __slots__ = ("x", "y")
    name = "DivBackward0"

    def __init__(self, x: Operandlike, y: Operandlike, result: Tensor) -> None:
        super().__init__(result.storage.tape, _inputs(x, y))
        self.x: Tensor | None = None
        self.y: Operandlike | None = y
        if isinstance(y, Tensor):
            self.save("other", y)
            if self.needs(1):
                assert isinstance(x, Tensor)
                self.x = x
                self.save("self", x)
        self.returns(result)

    def release(self) -> None:
        super().release()
        self.x = self.y = None

    def backward(self, gradients: Gradients) -> Gradients:
        (gradient,) = gradients
        second = self._divisor(gradient) if self.needs(1) else None
        first = div(gradient, self.y) if self.needs(0) else None
        return first, second

    def _divisor(self, gradient: Tensor) -> Tensor:
        x, y = self.x, self.y
        negated = neg(gradient)
        ratio = div(x, y)
        twice = div(ratio, y)
        return mul(negated, twice)


def div(x: Operandlike, y: Operandlike) -> Tensor:
    """``x / y``."""
    dtype = result_type(x, y)
    result = pointwise("div", x, y, dtype=dtype if dtype.is_floating_point else float32)
    if _records(x, y):
        if isinstance(x, Tensor):
            DivBackward0(x, y, result)
        else:
            raise NotImplementedError("a number divided by a tensor: multiply its reciprocal")
    return result


class PowBackward0(Node):
    __slots__ = ("exponent",)
    name = "PowBackward0"

    def backward(self, gradients: Gradients) -> Gradients:
        (gradient,) = gradients
        (x,) = self.saved
        if self.exponent == 0:
            return (copies.filled(self.tape, x.shape, x.dtype, "zeros_like"),)
        power = pow_(x, self.exponent - 1)
        scaled = mul(power, float(self.exponent))
        return (mul(gradient, scaled),)


def pow_(x: Tensor, exponent: Number) -> Tensor:
    """``x ** exponent``, of a number of Python's."""
    x = x.storage.tape.single(x)
    result = pointwise("pow", x, exponent)
    if x.records:
        node = PowBackward0(x.storage.tape, (x,))
        node.exponent = exponent
        node.save("self", x)
        node.returns(result)
    return result


class RsqrtBackward0(Node):
    __slots__ = ()
    name = "RsqrtBackward0"

    def backward(self, gradients: Gradients) -> Gradients:
        (gradient,) = gradients
        (result,) = self.saved
        scaled = mul(gradient, -0.5)
        cube = pow_(result, 3)
        return (mul(scaled, cube),)


def rsqrt(x: Tensor) -> Tensor:
    """One over the square root."""
    x = x.storage.tape.single(x)
    result = pointwise("rsqrt", x, dtype=floating(x))
    if x.records:
        node = RsqrtBackward0(x.storage.tape, (x,))
        node.returns(result)
        node.save("result", result, is_output=True)
    return result


class CosBackward0(Node):
    __slots__ = ()
    name = "CosBackward0"

    def backward(self, gradients: Gradients) -> Gradients:
        (gradient,) = gradients
        (x,) = self.saved
        sine = sin(x)
        negated = neg(sine)
        return (mul(gradient, negated),)


def cos(x: Tensor) -> Tensor:
    result = pointwise("cos", x, dtype=floating(x))
    if x.records:
        node = CosBackward0(x.storage.tape, (x,))
        node.save("self", x)
        node.returns(result)
    return result


class SinBackward0(Node):
    __slots__ = ()
    name = "SinBackward0"

    def backward(self, gradients: Gradients) -> Gradients:
        (gradient,) = gradients
        (x,) = self.saved
        cosine = cos(x)
        return (mul(gradient, cosine),)


def sin(x: Tensor) -> Tensor:
    result = pointwise("sin", x, dtype=floating(x))
    if x.records:
        node = SinBackward0(x.storage.tape, (x,))
        node.save("self", x)
        node.returns(result)
    return result


class ExpBackward0(Node):
    __slots__ = ()
    name = "ExpBackward0"

    def backward(self, gradients: Gradients) -> Gradients:
        (gradient,) = gradients
        (result,) = self.saved
        return (mul(gradient, result),)


def exp(x: Tensor) -> Tensor:
    x = x.storage.tape.single(x)
    result = pointwise("exp", x, dtype=floating(x))
    if x.records:
        node = ExpBackward0(x.storage.tape, (x,))
        node.returns(result)
        node.save("result", result, is_output=True)
    return result


def compare(name: str, x: Tensor, y: Operandlike) -> Tensor:
    """Truth values of a comparison, by PyTorch's name: ``"ge"``."""
    return pointwise(name, x, y, dtype=bool8)
