"""Operators that copy: clones, casts, joins, repetitions."""

from __future__ import annotations

from collections.abc import Sequence

from buddysim.base.errors import BuddysimError
from buddysim.training.autograd.dtypes import DType
from buddysim.training.autograd.layout import (
    Shape,
    channels_last_strides,
    contiguous_strides,
    is_channels_last,
    is_contiguous,
    normalized,
    preserved_strides,
)
from buddysim.training.autograd.node import Gradients, GraphNode
from buddysim.training.autograd.operators import pointwise, reductions, views
from buddysim.training.autograd.tensor import Tensor


class CloneBackward0(GraphNode):
    __slots__ = ()
    name = "CloneBackward0"

    def backward(self, gradient: Tensor) -> Gradients:
        return (gradient,)


def clone(x: Tensor, contiguous: bool = False) -> Tensor:
    """A copy, of the same layout unless `contiguous`."""
    tape = x.storage.tape
    strides = contiguous_strides(x.shape) if contiguous else preserved_strides(x.shape, x.strides)
    result = tape.empty(x.shape, x.dtype, "clone", strides)
    tape.launch("clone", (x,), (result,))
    if x.records:
        CloneBackward0(tape, (x,)).returns(result)
    return result


def contiguous(x: Tensor) -> Tensor:
    """The tensor itself where it is contiguous, else a copy that is."""
    return x if is_contiguous(x.shape, x.strides) else clone(x, contiguous=True)


class ToCopyBackward0(GraphNode):
    __slots__ = ("dtype",)
    name = "ToCopyBackward0"

    def __init__(self, x: Tensor) -> None:
        super().__init__(x.storage.tape, (x,))
        self.dtype = x.dtype

    def backward(self, gradient: Tensor) -> Gradients:
        return (to(gradient, self.dtype),)


def to(x: Tensor, dtype: DType) -> Tensor:
    """The tensor itself where it has the type, else a copy that has."""
    return x if x.dtype is dtype else _cast(x, dtype, preserved_strides(x.shape, x.strides))


def to_contiguous(x: Tensor, dtype: DType) -> Tensor:
    """The tensor itself where it has the type and isn't taken for an image, else a contiguous copy.

    That is ``x.to(dtype, memory_format=torch.contiguous_format)``, which leaves other layouts as they are.
    """
    if x.dtype is dtype and not is_channels_last(x.shape, x.strides):
        return x
    return _cast(x, dtype, contiguous_strides(x.shape))


def _cast(x: Tensor, dtype: DType, strides: Shape) -> Tensor:
    tape = x.storage.tape
    result = tape.empty(x.shape, dtype, "_to_copy", strides)
    tape.launch("_to_copy", (x,), (result,))
    if x.records and dtype.is_floating_point:
        ToCopyBackward0(x).returns(result)
    return result


class CatBackward0(GraphNode):
    __slots__ = ("dimension", "extents")
    name = "CatBackward0"

    def __init__(self, tensors: Sequence[Tensor], dimension: int) -> None:
        super().__init__(tensors[0].storage.tape, tensors)
        self.dimension = dimension
        self.extents = [one.shape[dimension] for one in tensors]

    def backward(self, gradient: Tensor) -> Gradients:
        results, start = [], 0
        for extent in self.extents:
            results.append(views.narrow(gradient, self.dimension, start, extent))
            start += extent
        return results


def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors joined along a dimension."""
    first = tensors[0]
    tape = first.storage.tape
    dim = normalized(dim, len(first.shape))
    rest = (*first.shape[:dim], *first.shape[dim + 1 :])
    if any((*one.shape[:dim], *one.shape[dim + 1 :]) != rest for one in tensors):
        raise BuddysimError(f"tensors of shapes {[one.shape for one in tensors]} can't be joined along dimension {dim}")
    extent = sum([one.shape[dim] for one in tensors])
    shape = (*first.shape[:dim], extent, *first.shape[dim + 1 :])
    strides = channels_last_strides(shape) if all(is_channels_last(one.shape, one.strides) for one in tensors) else None
    result = tape.empty(shape, pointwise.result_type(*tensors), "cat", strides)
    tape.launch("cat", tensors, (result,))
    if any(one.records for one in tensors):
        CatBackward0(tensors, dim).returns(result)
    return result


class StackBackward0(GraphNode):
    __slots__ = ("dimension",)
    name = "StackBackward0"

    def __init__(self, tensors: Sequence[Tensor], dimension: int) -> None:
        super().__init__(tensors[0].storage.tape, tensors)
        self.dimension = dimension

    def backward(self, gradient: Tensor) -> Gradients:
        return views.unbind(gradient, self.dimension)


def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors of one shape joined along a new dimension."""
    if any(one.shape != tensors[0].shape for one in tensors):
        raise BuddysimError(f"tensors of shapes {[one.shape for one in tensors]} can't be stacked")
    tape, first = tensors[0].storage.tape, tensors[0]
    dim = normalized(dim, len(first.shape) + 1)
    shape = (*first.shape[:dim], len(tensors), *first.shape[dim:])
    result = tape.empty(shape, pointwise.result_type(*tensors), "stack")
    tape.launch("stack", tensors, (result,))
    if any(one.records for one in tensors):
        StackBackward0(tensors, dim).returns(result)
    return result


class RepeatBackward0(GraphNode):
    """Sums over repetitions: new dimensions one by one, then all others at once."""

    __slots__ = ("repeats", "shape")
    name = "RepeatBackward0"

    def __init__(self, x: Tensor, repeats: Sequence[int]) -> None:
        super().__init__(x.storage.tape, (x,))
        self.repeats, self.shape = tuple(repeats), x.shape

    def backward(self, gradient: Tensor) -> Gradients:
        new = len(self.repeats) - len(self.shape)
        for _ in range(new):
            gradient = reductions.sum_(gradient, 0)
        split: list[int] = []
        summed: list[int] = []
        for count, extent in zip(self.repeats[new:], self.shape, strict=True):
            if count != 1:
                summed.append(len(split))
                split.append(count)
            split.append(extent)
        if not summed:
            return (gradient,)
        parts = views.reshape(gradient, split)
        return (reductions.sum_(parts, summed),)


def repeat(x: Tensor, repeats: Sequence[int]) -> Tensor:
    """Copies side by side: `repeats` times along each dimension, new ones in front."""
    tape = x.storage.tape
    own = (*(1,) * (len(repeats) - len(x.shape)), *x.shape)
    result = tape.empty(tuple([a * b for a, b in zip(own, repeats, strict=True)]), x.dtype, "repeat")
    tape.launch("repeat", (x,), (result,))
    if x.records:
        RepeatBackward0(x, repeats).returns(result)
    return result


def repeat_interleave(x: Tensor, repeats: int, dim: int) -> Tensor:
    """Each element of a dimension `repeats` times in a row."""
    dim = normalized(dim, len(x.shape))
    shape = (*x.shape[: dim + 1], repeats, *x.shape[dim + 1 :])
    expanded = views.expand(views.unsqueeze(x, dim + 1), shape)
    return views.flatten(clone(expanded, contiguous=True), dim, dim + 1)


class ConstantPadNdBackward0(GraphNode):
    __slots__ = ("pad",)
    name = "ConstantPadNdBackward0"

    def __init__(self, x: Tensor, pad: Sequence[int]) -> None:
        super().__init__(x.storage.tape, (x,))
        self.pad = tuple(pad)

    def backward(self, gradient: Tensor) -> Gradients:
        return (_padded(gradient, [-one for one in self.pad]),)


def pad(x: Tensor, pad: Sequence[int]) -> Tensor:
    """A number before and behind the last dimensions, the last one first, as PyTorch counts them."""
    result = _padded(x, pad)
    if x.records:
        ConstantPadNdBackward0(x, pad).returns(result)
    return result


def _padded(x: Tensor, pad: Sequence[int]) -> Tensor:
    shape = list(x.shape)
    for number in range(len(pad) // 2):
        shape[-1 - number] += pad[2 * number] + pad[2 * number + 1]
    tape = x.storage.tape
    strides = preserved_strides(tuple(shape), x.strides) if max(pad) <= 0 else None  # elements left out alone: a clone
    if strides is None and is_channels_last(x.shape, x.strides):
        strides = channels_last_strides(tuple(shape))
    result = tape.empty(tuple(shape), x.dtype, "constant_pad_nd", strides)
    tape.launch("constant_pad_nd", (x,), (result,))
    return result
