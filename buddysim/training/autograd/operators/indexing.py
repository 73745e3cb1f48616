"""Rows of a matrix by their numbers, and operators that read a mask."""

from __future__ import annotations

from buddysim.training.autograd.node import Gradients, GraphNode
from buddysim.training.autograd.operators import fills
from buddysim.training.autograd.operators.pointwise import Operand, pointwise, records, result_type
from buddysim.training.autograd.tensor import Number, Tensor


class EmbeddingBackward0(GraphNode):
    __slots__ = ("words",)
    name = "EmbeddingBackward0"

    def __init__(self, weight: Tensor, indices: Tensor, result: Tensor) -> None:
        super().__init__(weight.storage.tape, (weight,))
        self.words = weight.shape[0]
        self.save("indices", indices)
        self.returns(result)

    def backward(self, gradient: Tensor) -> Gradients:
        kernel = "embedding_dense_backward"
        result = self.tape.empty((self.words, gradient.shape[-1]), gradient.dtype, kernel)
        self.tape.launch(kernel, (gradient, *self.saved), (result,))
        return (result,)


def embedding(indices: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """Rows of a matrix; `padding_idx`'s gradient is zero, and as large as the others'."""
    tape = weight.storage.tape
    result = tape.empty((*indices.shape, weight.shape[1]), weight.dtype, "embedding")
    tape.launch("embedding", (weight, indices), (result,))
    if weight.records:
        EmbeddingBackward0(weight, indices, result)
    return result


class MaskedFillBackward0(GraphNode):
    __slots__ = ()
    name = "MaskedFillBackward0"

    def __init__(self, x: Tensor, mask: Tensor, result: Tensor) -> None:
        super().__init__(x.storage.tape, (x,))
        self.save("mask", mask)
        self.returns(result)

    def backward(self, gradient: Tensor) -> Gradients:
        (mask,) = self.saved
        return (masked_fill(gradient, mask, 0),)


def masked_fill(x: Tensor, mask: Tensor, value: Number) -> Tensor:
    """The tensor with a number where a mask is true."""
    result = pointwise("masked_fill", x, mask, dtype=x.dtype)
    if x.records:
        MaskedFillBackward0(x, mask, result)
    return result


class WhereBackward0(GraphNode):
    __slots__ = ()
    name = "WhereBackward0"

    def __init__(self, mask: Tensor, x: Tensor, y: Tensor, result: Tensor) -> None:
        super().__init__(mask.storage.tape, (x, y))
        self.save("condition", mask)
        self.returns(result)

    def backward(self, gradient: Tensor) -> Gradients:
        (mask,) = self.saved
        second = where(mask, 0, gradient) if self.needs(1) else None
        first = where(mask, gradient, 0) if self.needs(0) else None
        return first, second


def where(condition: Tensor, x: Operand, y: Operand) -> Tensor:
    """Elements of `x` where a mask is true, else of `y`; a number becomes a tensor on the GPU, the kernel casts."""
    tape, dtype = condition.storage.tape, result_type(x, y)
    first, second = (
        one if isinstance(one, Tensor) else fills.filled((), dtype, "scalar_tensor", tape) for one in (x, y)
    )
    result = pointwise("where", condition, first, second, dtype=dtype)
    if records(first, second):
        WhereBackward0(condition, first, second, result)
    return result
