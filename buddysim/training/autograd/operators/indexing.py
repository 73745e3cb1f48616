"""Operators that read or write by indices or masks."""

from __future__ import annotations

from buddysim.training.autograd.layout import contiguous_strides, pointwise_strides
from buddysim.training.autograd.node import Gradients, Node
from buddysim.training.autograd.operators import copies
from buddysim.training.autograd.operators.pointwise import Operandlike, pointwise, result_type
from buddysim.training.autograd.tensor import Number, Tensor


class EmbeddingBackward0(Node):
    __slots__ = ("words",)
    name = "EmbeddingBackward0"

    def backward(self, gradients: Gradients) -> Gradients:
        (gradient,) = gradients
        assert gradient is not None
        result = self.tape.empty((self.words, gradient.shape[-1]), gradient.dtype, "embedding_dense_backward")
        self.tape.launch("embedding_dense_backward", (gradient, *self.saved), (result,))
        return (result,)


def embedding(indices: Tensor, weight: Tensor) -> Tensor:
    """Rows of a matrix."""
    tape = weight.storage.tape
    result = tape.empty((*indices.shape, weight.shape[1]), weight.dtype, "embedding")
    tape.launch("embedding", (weight, indices), (result,))
    if weight.records:
        node = EmbeddingBackward0(tape, (weight,))
        node.words = weight.shape[0]
        node.save("indices", indices)
        node.returns(result)
    return result


class MaskedFillBackward0(Node):
    __slots__ = ()
    name = "MaskedFillBackward0"

    def backward(self, gradients: Gradients) -> Gradients:
        (gradient,), (mask,) = gradients, self.saved
        assert gradient is not None
        return (masked_fill(gradient, mask, 0),)


def masked_fill(x: Tensor, mask: Tensor, value: Number) -> Tensor:
    """The tensor with a number where a mask is true."""
    result = pointwise("masked_fill", x, mask, dtype=x.dtype)
    if x.records:
        node = MaskedFillBackward0(x.storage.tape, (x,))
        node.save("mask", mask)
        node.returns(result)
    return result


class WhereBackward0(Node):
    __slots__ = ()
    name = "WhereBackward0"

    def backward(self, gradients: Gradients) -> Gradients:
        (gradient,), (mask,) = gradients, self.saved
        assert gradient is not None
        second = where(mask, 0, gradient) if self.needs(1) else None
        first = where(mask, gradient, 0) if self.needs(0) else None
        return first, second


def where(mask: Tensor, x: Operandlike, y: Operandlike) -> Tensor:
    """Elements of `x` where a mask is true, else of `y`."""
    tape = mask.storage.tape
    dtype = result_type(x, y)
    branches = [
        copies.to(one, dtype) if isinstance(one, Tensor) else copies.filled(tape, (), dtype, "scalar_tensor")
        for one in (x, y)
    ]
    result = pointwise("where", mask, *branches, dtype=dtype)
    if any(one.records for one in branches):
        node = WhereBackward0(tape, branches)
        node.save("condition", mask)
        node.returns(result)
    return result


__all__ = ["contiguous_strides", "embedding", "masked_fill", "pointwise_strides", "where"]
