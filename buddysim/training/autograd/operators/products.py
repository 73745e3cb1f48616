"""Matrix products, and the operators that PyTorch writes in terms of them."""

from __future__ import annotations

from math import prod

from buddysim.base.errors import BuddysimError
from buddysim.training.autograd.layout import Shape, broadcast, is_contiguous
from buddysim.training.autograd.node import Gradients, GraphNode
from buddysim.training.autograd.operators import arithmetic, copies, views
from buddysim.training.autograd.operators.pointwise import records
from buddysim.training.autograd.records import Product
from buddysim.training.autograd.tensor import Number, Tensor


def _multiplied(name: str, x: Tensor, y: Tensor, bias: Tensor | None = None) -> Tensor:
    """Record a product of two matrices, or of as many pairs of them."""
    if x.shape[:-2] != y.shape[:-2] or x.shape[-1] != y.shape[-2]:
        raise BuddysimError(f"matrices of shapes {x.shape} and {y.shape} can't be multiplied")
    if x.dtype is not y.dtype:
        raise BuddysimError(f"matrices of types {x.dtype} and {y.dtype} can't be multiplied")
    tape = x.storage.tape
    m, k, n = x.shape[-2], x.shape[-1], y.shape[-1]
    result = tape.empty((*x.shape[:-1], n), x.dtype, name)
    reads = (x, y) if bias is None else (bias, x, y)
    tape.launch(name, reads, (result,), (Product(m, n, k, prod(x.shape[:-2])),))
    return result


def _is_column_major(shape: Shape, strides: Shape) -> bool:
    return strides[0] == 1 and strides[1] == shape[0]


class MmBackward0(GraphNode):
    """Saves each matrix that the other one's gradient needs; a gradient has the layout of its matrix."""

    __slots__ = ("layouts",)
    name = "MmBackward0"

    def __init__(self, x: Tensor, y: Tensor, result: Tensor, bias: Tensor | None = None) -> None:
        super().__init__(x.storage.tape, (x, y, bias))
        self.layouts = (x.shape, x.strides), (y.shape, y.strides)
        self.save("self" if bias is None else "mat1", x, self.needs(1))
        self.save("mat2", y, self.needs(0))
        self.returns(result)

    def backward(self, gradient: Tensor) -> Gradients:
        x, y = self.saved
        right = self._right(gradient, x) if self.needs(1) else None
        left = self._left(gradient, y) if self.needs(0) else None
        return left, right, gradient if self.needs(2) else None

    def _left(self, gradient: Tensor, y: Tensor) -> Tensor:
        if _is_column_major(*self.layouts[0]):
            return views.t(_multiplied("mm", y, views.t(gradient)))
        return _multiplied("mm", gradient, views.t(y))

    def _right(self, gradient: Tensor, x: Tensor) -> Tensor:
        if _is_column_major(*self.layouts[1]):
            return views.t(_multiplied("mm", views.t(gradient), x))
        return _multiplied("mm", views.t(x), gradient)


class AddmmBackward0(MmBackward0):
    """As of a product, the left matrix's gradient first."""

    __slots__ = ()
    name = "AddmmBackward0"

    def backward(self, gradient: Tensor) -> Gradients:
        x, y = self.saved
        left = self._left(gradient, y) if self.needs(0) else None
        right = self._right(gradient, x) if self.needs(1) else None
        return left, right, gradient if self.needs(2) else None


def mm(x: Tensor, y: Tensor) -> Tensor:
    """The product of two matrices."""
    x, y = x.storage.tape.lower(x), x.storage.tape.lower(y)
    result = _multiplied("mm", x, y)
    if records(x, y):
        MmBackward0(x, y, result)
    return result


def addmm(bias: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """The product of two matrices, plus a tensor that is broadcast to its shape."""
    tape = x.storage.tape
    bias, x, y = tape.lower(bias), tape.lower(x), tape.lower(y)
    result = _multiplied("addmm", x, y, bias)
    if records(bias, x, y):
        AddmmBackward0(x, y, result, bias)
    return result


class BmmBackward0(GraphNode):
    """Saves each batch that the other one's gradient needs."""

    __slots__ = ()
    name = "BmmBackward0"

    def __init__(self, x: Tensor, y: Tensor, result: Tensor) -> None:
        super().__init__(x.storage.tape, (x, y))
        self.save("self", x, self.needs(1))
        self.save("mat2", y, self.needs(0))
        self.returns(result)

    def backward(self, gradient: Tensor) -> Gradients:
        x, y = self.saved
        right = _multiplied("bmm", views.transpose(x, 1, 2), gradient) if self.needs(1) else None
        left = _multiplied("bmm", gradient, views.transpose(y, 1, 2)) if self.needs(0) else None
        return left, right


def bmm(x: Tensor, y: Tensor) -> Tensor:
    """The products of as many pairs of matrices."""
    x, y = x.storage.tape.lower(x), x.storage.tape.lower(y)
    result = _multiplied("bmm", x, y)
    if records(x, y):
        BmmBackward0(x, y, result)
    return result


class BaddbmmBackward0(GraphNode):
    """As of a batch of products, scaled."""

    __slots__ = ("alpha", "beta")
    name = "BaddbmmBackward0"

    def __init__(self, bias: Tensor, x: Tensor, y: Tensor, result: Tensor, beta: Number, alpha: Number) -> None:
        super().__init__(x.storage.tape, (bias, x, y))
        self.alpha, self.beta = alpha, beta
        self.save("batch1", x, self.needs(2))
        self.save("batch2", y, self.needs(1))
        self.returns(result)

    def backward(self, gradient: Tensor) -> Gradients:
        x, y = self.saved
        left = self._scaled(_multiplied("bmm", gradient, views.transpose(y, 1, 2))) if self.needs(1) else None
        right = self._scaled(_multiplied("bmm", views.transpose(x, 1, 2), gradient)) if self.needs(2) else None
        bias = None
        if self.needs(0):
            bias = gradient if self.beta == 1 else arithmetic.mul(gradient, self.beta)
        return bias, left, right

    def _scaled(self, product: Tensor) -> Tensor:
        return product if self.alpha == 1 else arithmetic.mul(product, self.alpha)


def baddbmm(bias: Tensor, x: Tensor, y: Tensor, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """``beta * bias + alpha * (x @ y)``, of batches of matrices."""
    tape = x.storage.tape
    bias, x, y = tape.lower(bias), tape.lower(x), tape.lower(y)
    result = _multiplied("baddbmm", x, y, bias)
    if records(bias, x, y):
        BaddbmmBackward0(bias, x, y, result, beta, alpha)
    return result


def matmul(x: Tensor, y: Tensor) -> Tensor:
    """``x @ y`` of matrices and batches of them: one product where a batch folds into a matrix, else one by one."""
    x, y = x.storage.tape.lower(x), x.storage.tape.lower(y)
    if len(x.shape) < 2 or len(y.shape) < 2:
        raise NotImplementedError("a product with a vector")
    if len(x.shape) == len(y.shape) == 2:
        return mm(x, y)
    if _folds(x, y):
        if len(y.shape) > len(x.shape):
            result = _folded(views.transpose(y, -1, -2), views.t(x))
            return copies.contiguous(views.transpose(result, -1, -2))
        return _folded(x, y)
    if len(x.shape) == len(y.shape) == 3 and x.shape[0] != y.shape[0]:
        if x.shape[0] == 1 and x.requires_grad:
            return matmul(views.squeeze(x, 0), y)
        if y.shape[0] == 1 and y.requires_grad:
            return matmul(x, views.squeeze(y, 0))
    batch = broadcast(x.shape[:-2], y.shape[:-2])
    count = prod(batch)
    left = views.reshape(views.expand(x, (*batch, *x.shape[-2:])), (count, *x.shape[-2:]))
    right = views.reshape(views.expand(y, (*batch, *y.shape[-2:])), (count, *y.shape[-2:]))
    return views.unsafe_view(bmm(left, right), (*batch, x.shape[-2], y.shape[-1]))


def _folded(x: Tensor, y: Tensor) -> Tensor:
    folded = views.reshape(x, (prod(x.shape[:-1]), x.shape[-1]))
    return views.unsafe_view(mm(folded, y), (*x.shape[:-1], y.shape[-1]))


def _folds(x: Tensor, y: Tensor) -> bool:
    """Whether PyTorch multiplies a batch with one matrix as one product (``LinearAlgebra.cpp``, `should_fold`)."""
    large, small = (x, y) if len(x.shape) >= len(y.shape) else (y, x)
    if len(small.shape) > 2:
        return False
    if small.requires_grad:
        return True
    if len(x.shape) == 2:
        return False
    shape, strides = large.shape, large.strides
    return prod(shape) == 0 or all(strides[one] == strides[one + 1] * shape[one + 1] for one in range(len(shape) - 2))


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``x @ weight.T + bias``."""
    tape = x.storage.tape
    x, weight = tape.lower(x), tape.lower(weight)
    if bias is None:
        return matmul(x, views.t(weight))
    bias = tape.lower(bias)
    if len(x.shape) == 2:
        return addmm(bias, x, views.t(weight))
    if len(x.shape) > 2 and is_contiguous(x.shape, x.strides) and is_contiguous(bias.shape, bias.strides):
        flat = views.reshape(x, (prod(x.shape[:-1]), x.shape[-1]))
        return views.view(addmm(bias, flat, views.t(weight)), (*x.shape[:-1], weight.shape[0]))
    product = matmul(x, views.t(weight))
    return (arithmetic.add if tape.in_dispatch_mode else arithmetic.add_)(product, bias)
