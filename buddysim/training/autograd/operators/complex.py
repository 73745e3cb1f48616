"""Pairs of numbers as complex ones, by whose products some models rotate features.

A gradient's product reads the conjugate of the other factor, which its kernel writes and drops.
"""

from __future__ import annotations

from buddysim.training.autograd.dtypes import complex64, float32
from buddysim.training.autograd.node import Gradients, GraphNode
from buddysim.training.autograd.operators import copies
from buddysim.training.autograd.operators.pointwise import pointwise
from buddysim.training.autograd.tensor import Tensor


class ViewAsComplexBackward0(GraphNode):
    __slots__ = ()
    name = "ViewAsComplexBackward0"

    def backward(self, gradient: Tensor) -> Gradients:
        return (view_as_real(gradient),)


class ViewAsRealBackward0(GraphNode):
    __slots__ = ()
    name = "ViewAsRealBackward0"

    def backward(self, gradient: Tensor) -> Gradients:
        return (view_as_complex(copies.contiguous(gradient)),)


def view_as_complex(x: Tensor) -> Tensor:
    """Pairs of the last dimension, which is dropped, as complex numbers."""
    strides = tuple([one // 2 for one in x.strides[:-1]])
    result = Tensor(x.shape[:-1], strides, x.offset // 2, complex64, x.storage, "view_as_complex")
    result.is_view = True
    if x.records:
        ViewAsComplexBackward0(x.storage.tape, (x,)).returns(result)
    return result


def view_as_real(x: Tensor) -> Tensor:
    """Complex numbers as pairs along a new last dimension."""
    strides = (*[2 * one for one in x.strides], 1)
    result = Tensor((*x.shape, 2), strides, 2 * x.offset, float32, x.storage, "view_as_real")
    result.is_view = True
    if x.records:
        ViewAsRealBackward0(x.storage.tape, (x,)).returns(result)
    return result


def polar(angles: Tensor) -> Tensor:
    """Complex numbers of length 1. Without a gradient."""
    lengths = angles.tape.empty(angles.shape, float32, "ones_like")
    angles.tape.launch("ones_like", (), (lengths,))
    return pointwise("polar", lengths, angles, dtype=complex64)
