"""Matrix products, and the operators that PyTorch writes in terms of them."""

from __future__ import annotations

from math import prod

from buddysim.base.errors import BuddysimError
from buddysim.training.autograd.layout import Shape, broadcast, is_contiguous
from buddysim.training.autograd.node import Gradients, Node
from buddysim.training.autograd.operators import pointwise, views
from buddysim.training.autograd.records import Product
from buddysim.training.autograd.tensor import Tensor


def _first_gradient(gradient: Tensor, second: Tensor, shape: Shape, strides: Shape) -> Tensor:
    """The gradient of the left matrix, in that matrix's layout."""
    if strides[0] == 1 and strides[1] == shape[0]:
        return views.t(_mm(second, views.t(gradient)))
    return _mm(gradient, views.t(second))


def _second_gradient(gradient: Tensor, first: Tensor, shape: Shape, strides: Shape) -> Tensor:
    """The gradient of the right matrix, in that matrix's layout."""
    if strides[0] == 1 and strides[1] == shape[0]:
        return views.t(_mm(views.t(gradient), first))
    return _mm(views.t(first), gradient)


def _mm(x: Tensor, y: Tensor, name: str = "mm", bias: Tensor | None = None) -> Tensor:
    (m, k), (other, n) = x.shape, y.shape
    if k != other:
        raise BuddysimError(f"matrices of shapes {x.shape} and {y.shape} can't be multiplied")
    if x.dtype is not y.dtype:
        raise BuddysimError(f"matrices of types {x.dtype} and {y.dtype} can't be multiplied")
    tape = x.storage.tape
    result = tape.empty((m, n), x.dtype, name)
    tape.launch(name, (x, y) if bias is None else (bias, x, y), (result,), (Product(m, n, k, 1),))
    return result


class MmBackward0(Node):
    """Saves each matrix that the other one's gradient needs."""

    __slots__ = ("first", "layouts", "second")
    name = "MmBackward0"

    def __init__(self, x: Tensor, y: Tensor, result: Tensor, bias: Tensor | None = None) -> None:
        super().__init__(x.storage.tape, (x, y, bias))
        self.layouts = (x.shape, x.strides), (y.shape, y.strides)
        self.first = self.second = None
        if self.needs(1):
            self.first = x
            self.save("self" if bias is None else "mat1", x)
        if self.needs(0):
            self.second = y
            self.save("mat2", y)
        self.returns(result)

    def release(self) -> None:
        super().release()
        self.first = self.second = None

    def backward(self, gradients: Gradients) -> Gradients:
        (gradient,) = gradients
        first, second = self.layouts
        left = _first_gradient(gradient, self.second, *first) if self.second is not None else None
        right = _second_gradient(gradient, self.first, *second) if self.first is not None else None
        return left, right, gradient if self.needs(2) else None


class AddmmBackward0(MmBackward0):
    name = "AddmmBackward0"


def mm(x: Tensor, y: Tensor) -> Tensor:
    """The product of two matrices."""
    x, y = x.storage.tape.lower(x), x.storage.tape.lower(y)
    result = _mm(x, y)
    if x.records or y.records:
        MmBackward0(x, y, result)
    return result


def addmm(bias: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """The product of two matrices, plus a tensor that is broadcast to its shape."""
    tape = x.storage.tape
    bias, x, y = tape.lower(bias), tape.lower(x), tape.lower(y)
    result = _mm(x, y, "addmm", bias)
    if bias.records or x.records or y.records:
        AddmmBackward0(x, y, result, bias)
    return result


def _bmm(x: Tensor, y: Tensor) -> Tensor:
    (count, m, k), (others, other, n) = x.shape, y.shape
    if k != other or count != others:
        raise BuddysimError(f"batches of matrices of shapes {x.shape} and {y.shape} can't be multiplied")
    if x.dtype is not y.dtype:
        raise BuddysimError(f"matrices of types {x.dtype} and {y.dtype} can't be multiplied")
    tape = x.storage.tape
    result = tape.empty((count, m, n), x.dtype, "bmm")
    tape.launch("bmm", (x, y), (result,), (Product(m, n, k, count),))
    return result


class BmmBackward0(Node):
    """Saves each batch that the other one's gradient needs."""

    __slots__ = ("first", "second")
    name = "BmmBackward0"

    def __init__(self, x: Tensor, y: Tensor, result: Tensor) -> None:
        super().__init__(x.storage.tape, (x, y))
        self.first = self.second = None
        if self.needs(1):
            self.first = x
            self.save("self", x)
        if self.needs(0):
            self.second = y
            self.save("mat2", y)
        self.returns(result)

    def release(self) -> None:
        super().release()
        self.first = self.second = None

    def backward(self, gradients: Gradients) -> Gradients:
        (gradient,) = gradients
        x, y = self.first, self.second
        right = _bmm(views.transpose(x, 1, 2), gradient) if x is not None else None
        left = _bmm(gradient, views.transpose(y, 1, 2)) if y is not None else None
        return left, right


def bmm(x: Tensor, y: Tensor) -> Tensor:
    """The products of as many pairs of matrices."""
    x, y = x.storage.tape.lower(x), x.storage.tape.lower(y)
    result = _bmm(x, y)
    if x.records or y.records:
        BmmBackward0(x, y, result)
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
            transposed = views.transpose(result, -1, -2)
            return transposed.contiguous()
        return _folded(x, y)
    batch = broadcast(x.shape[:-2], y.shape[:-2])
    count = prod(batch)
    left, right = (
        views.reshape(views.expand(one, (*batch, *one.shape[-2:])), (count, *one.shape[-2:])) for one in (x, y)
    )
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
    return all(strides[one] == strides[one + 1] * shape[one + 1] for one in range(len(shape) - 2))


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``x @ weight.T + bias``."""
    tape = x.storage.tape
    x, weight = tape.lower(x), tape.lower(weight)
    if bias is None:
        return matmul(x, views.t(weight))
    bias = tape.lower(bias)
    if len(x.shape) == 2:
        return addmm(bias, x, views.t(weight))
    if is_contiguous(x.shape, x.strides):
        flat = views.reshape(x, (prod(x.shape[:-1]), x.shape[-1]))
        return views.view(addmm(bias, flat, views.t(weight)), (*x.shape[:-1], weight.shape[0]))
    return pointwise.add_(matmul(x, views.t(weight)), bias)
