"""Views: tensors on the storage of another one, and the reshaping that copies where no view can be had."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.training.autograd.layout import Shape, expanded_strides, is_contiguous, normalized, view_strides
from buddysim.training.autograd.node import Gradients, GraphNode
from buddysim.training.autograd.operators import copies, fills, reductions
from buddysim.training.autograd.tensor import Tensor


def _alias(x: Tensor, shape: Shape, strides: Shape, producer: str, offset: int = 0) -> Tensor:
    x.storage.tape.views += 1
    result = Tensor(shape, strides, x.offset + offset, x.dtype, x.storage, producer)
    result.is_view = True
    return result


class _ViewNode(GraphNode):
    """A view, whose formula reads numbers alone."""

    __slots__ = ("arguments",)

    def __init__(self, x: Tensor, result: Tensor, *arguments: Any) -> None:
        super().__init__(x.storage.tape, (x,))
        self.arguments: Any = arguments
        self.returns(result)


class ViewBackward0(_ViewNode):
    name = "ViewBackward0"

    def backward(self, gradient: Tensor) -> Gradients:
        (shape,) = self.arguments
        return (reshape(gradient, shape),)


class ReshapeAliasBackward0(ViewBackward0):
    name = "ReshapeAliasBackward0"


class UnsafeViewBackward0(ViewBackward0):
    name = "UnsafeViewBackward0"


def view(x: Tensor, shape: Sequence[int]) -> Tensor:
    """Another shape on the same storage.

    Raises
    ------
    BuddysimError
        a layout that needs a copy
    """
    target = inferred(x, shape)
    strides = view_strides(x.shape, x.strides, target)
    if strides is None:
        raise BuddysimError(f"a tensor of shape {x.shape} and strides {x.strides} can't be viewed as {target}")
    result = _alias(x, target, strides, "view")
    if x.records:
        ViewBackward0(x, result, x.shape)
    return result


def unsafe_view(x: Tensor, shape: Shape) -> Tensor:
    """A view that autograd takes for a tensor of its own."""
    result = _alias(x, shape, view_strides(x.shape, x.strides, shape) or (), "_unsafe_view")
    result.is_view = False
    if x.records:
        UnsafeViewBackward0(x, result, x.shape)
    return result


def reshape(x: Tensor, shape: Sequence[int]) -> Tensor:
    """A view where the layout allows it, else a copy; PyTorch has an operator of its own where it isn't contiguous."""
    target = inferred(x, shape)
    strides = view_strides(x.shape, x.strides, target)
    if strides is not None:
        if is_contiguous(x.shape, x.strides):
            return view(x, target)
        result = _alias(x, target, strides, "_reshape_alias")
        if x.records:
            ReshapeAliasBackward0(x, result, x.shape)
        return result
    return unsafe_view(copies.clone(x, contiguous=True), target)


def inferred(x: Tensor, shape: Sequence[int]) -> Shape:
    """A shape with its one -1 replaced.

    Raises
    ------
    BuddysimError
        another number of elements
    """
    target = tuple(shape)
    elements = prod(x.shape)
    if -1 in target:
        position = target.index(-1)
        others = prod(target[:position]) * prod(target[position + 1 :])
        if others <= 0 or elements % others:
            raise BuddysimError(f"a tensor of shape {x.shape} can't have the shape {target}")
        return (*target[:position], elements // others, *target[position + 1 :])
    if prod(target) != elements:
        raise BuddysimError(f"a tensor of shape {x.shape} can't have the shape {target}")
    return target


def flatten(x: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Dimensions `start_dim` to `end_dim` as one."""
    start, end = normalized(start_dim, len(x.shape)), normalized(end_dim, len(x.shape))
    if not x.shape:
        return reshape(x, (1,))
    if start == end:
        return x
    return reshape(x, (*x.shape[:start], prod(x.shape[start : end + 1]), *x.shape[end + 1 :]))


class AliasBackward0(_ViewNode):
    name = "AliasBackward0"

    def backward(self, gradient: Tensor) -> Gradients:
        return (gradient,)


def alias(x: Tensor) -> Tensor:
    """The same tensor under another name."""
    result = _alias(x, x.shape, x.strides, "alias")
    if x.records:
        AliasBackward0(x, result)
    return result


class TBackward0(_ViewNode):
    name = "TBackward0"

    def backward(self, gradient: Tensor) -> Gradients:
        return (t(gradient),)


def t(x: Tensor) -> Tensor:
    """The transpose of a matrix.

    Raises
    ------
    BuddysimError
        more dimensions
    """
    if len(x.shape) > 2:
        raise BuddysimError(f"the transpose of a tensor of shape {x.shape}: expected a matrix")
    result = _alias(x, x.shape[::-1], x.strides[::-1], "t")
    if x.records:
        TBackward0(x, result)
    return result


class TransposeBackward0(_ViewNode):
    name = "TransposeBackward0"

    def backward(self, gradient: Tensor) -> Gradients:
        first, second = self.arguments
        return (transpose(gradient, first, second),)


def transpose(x: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two dimensions exchanged."""
    dim0, dim1 = normalized(dim0, len(x.shape)), normalized(dim1, len(x.shape))
    shape, strides = list(x.shape), list(x.strides)
    shape[dim0], shape[dim1] = shape[dim1], shape[dim0]
    strides[dim0], strides[dim1] = strides[dim1], strides[dim0]
    result = _alias(x, tuple(shape), tuple(strides), "transpose")
    if x.records:
        TransposeBackward0(x, result, dim0, dim1)
    return result


class PermuteBackward0(_ViewNode):
    name = "PermuteBackward0"

    def backward(self, gradient: Tensor) -> Gradients:
        (order,) = self.arguments
        inverse = [0] * len(order)
        for position, dimension in enumerate(order):
            inverse[dimension] = position
        return (permute(gradient, inverse),)


def permute(x: Tensor, dims: Sequence[int]) -> Tensor:
    """Dimensions in another order."""
    order = [normalized(one, len(x.shape)) for one in dims]
    if sorted(order) != list(range(len(x.shape))):
        raise BuddysimError(f"dimensions in the order {tuple(dims)} of a tensor of {len(x.shape)}")
    result = _alias(x, tuple([x.shape[one] for one in order]), tuple([x.strides[one] for one in order]), "permute")
    if x.records:
        PermuteBackward0(x, result, order)
    return result


class ExpandBackward0(_ViewNode):
    name = "ExpandBackward0"

    def backward(self, gradient: Tensor) -> Gradients:
        (shape,) = self.arguments
        return (reductions.sum_to(gradient, shape),)


def expand(x: Tensor, shape: Sequence[int]) -> Tensor:
    """Extents of 1, and new ones in front, repeated without a copy; -1 leaves an extent as it is."""
    missing = len(shape) - len(x.shape)
    target = tuple([x.shape[one - missing] if extent == -1 else extent for one, extent in enumerate(shape)])
    result = _alias(x, target, expanded_strides(x.shape, x.strides, target), "expand")
    if x.records:
        ExpandBackward0(x, result, x.shape)
    return result


class UnsqueezeBackward0(_ViewNode):
    name = "UnsqueezeBackward0"

    def backward(self, gradient: Tensor) -> Gradients:
        (dimension,) = self.arguments
        return (squeeze(gradient, dimension),)


def unsqueeze(x: Tensor, dim: int) -> Tensor:
    """A new extent of 1."""
    dim = normalized(dim, len(x.shape) + 1)
    stride = x.shape[dim] * x.strides[dim] if dim < len(x.shape) else 1
    shape, strides = (*x.shape[:dim], 1, *x.shape[dim:]), (*x.strides[:dim], stride, *x.strides[dim:])
    result = _alias(x, shape, strides, "unsqueeze")
    if x.records:
        UnsqueezeBackward0(x, result, dim)
    return result


class SqueezeBackward1(_ViewNode):
    name = "SqueezeBackward1"

    def backward(self, gradient: Tensor) -> Gradients:
        dimension, extent = self.arguments
        return (unsqueeze(gradient, dimension) if extent == 1 else gradient,)


def squeeze(x: Tensor, dim: int) -> Tensor:
    """An extent dropped, if it is 1."""
    dim = normalized(dim, len(x.shape))
    extent = x.shape[dim] if x.shape else 0
    shape, strides = x.shape, x.strides
    if extent == 1:
        shape, strides = (*shape[:dim], *shape[dim + 1 :]), (*strides[:dim], *strides[dim + 1 :])
    result = _alias(x, shape, strides, "squeeze")
    if x.records:
        SqueezeBackward1(x, result, dim, extent)
    return result


class SliceBackward0(_ViewNode):
    name = "SliceBackward0"

    def backward(self, gradient: Tensor) -> Gradients:
        (shape,) = self.arguments
        return (fills.padded_with_zeros(gradient, shape, "slice_backward"),)


def slice_(x: Tensor, dim: int, start: int | None, end: int | None, step: int = 1) -> Tensor:
    """Elements `start` to `end` of a dimension; negative numbers count from its end."""
    dim = normalized(dim, len(x.shape))
    first, last, step = slice(start, end, step).indices(x.shape[dim])
    extent, stride = max(0, -(-(last - first) // step)), x.strides[dim]
    result = _alias(
        x,
        (*x.shape[:dim], extent, *x.shape[dim + 1 :]),
        (*x.strides[:dim], stride * step, *x.strides[dim + 1 :]),
        "slice",
        first * stride,
    )
    if x.records:
        SliceBackward0(x, result, x.shape)
    return result


def narrow(x: Tensor, dim: int, start: int, length: int) -> Tensor:
    """`length` elements of a dimension."""
    return slice_(x, dim, start, start + length)


class SelectBackward0(_ViewNode):
    name = "SelectBackward0"

    def backward(self, gradient: Tensor) -> Gradients:
        (shape,) = self.arguments
        return (fills.padded_with_zeros(gradient, shape, "select_backward"),)


def select(x: Tensor, dim: int, index: int) -> Tensor:
    """One element of a dimension, which is dropped."""
    dim = normalized(dim, len(x.shape))
    extent = x.shape[dim]
    if not -extent <= index < extent:
        raise BuddysimError(f"element {index} of an extent of {extent}")
    result = _alias(
        x,
        (*x.shape[:dim], *x.shape[dim + 1 :]),
        (*x.strides[:dim], *x.strides[dim + 1 :]),
        "select",
        index % extent * x.strides[dim],
    )
    if x.records:
        SelectBackward0(x, result, x.shape)
    return result


class SplitBackward0(GraphNode):
    """Parts of a dimension; their gradients are joined, zeros where a part has none."""

    __slots__ = ("dimension", "parts")
    name = "SplitBackward0"

    def __init__(self, x: Tensor, parts: Sequence[Tensor], dimension: int) -> None:
        super().__init__(x.storage.tape, (x,))
        self.dimension = dimension
        self.parts = [part.shape for part in parts]
        for part in parts:
            self.returns(part)

    def run(self, gradients: list[Tensor | None]) -> Gradients:
        joined = [
            fills.zeros(shape, self.outputs[0][1], self.tape) if one is None else one
            for one, shape in zip(gradients, self.parts, strict=True)
        ]
        return (copies.cat(joined, self.dimension),)


class SplitWithSizesBackward0(SplitBackward0):
    name = "SplitWithSizesBackward0"


def split(x: Tensor, split_size: int | Sequence[int], dim: int = 0) -> list[Tensor]:
    """Parts of `split_size` elements (the last one may be smaller), or of the sizes that are listed."""
    dim = normalized(dim, len(x.shape))
    extent, sizes = x.shape[dim], []
    if isinstance(split_size, int):
        sizes = [min(split_size, extent - start) for start in range(0, extent, split_size)] or [0]
    else:
        sizes = list(split_size)
    if sum(sizes) != extent:
        raise BuddysimError(f"parts of {sizes} elements of an extent of {extent}")
    producer = "split" if isinstance(split_size, int) else "split_with_sizes"
    node = SplitBackward0 if isinstance(split_size, int) else SplitWithSizesBackward0
    parts, start = [], 0
    for number in sizes:
        shape = (*x.shape[:dim], number, *x.shape[dim + 1 :])
        parts.append(_alias(x, shape, x.strides, producer, start * x.strides[dim]))
        start += number
    x.storage.tape.views -= len(parts) - 1
    if x.records:
        node(x, parts, dim)
    return parts


def chunk(x: Tensor, chunks: int, dim: int = 0) -> list[Tensor]:
    """At most `chunks` parts of one size."""
    return split(x, max(1, -(-x.shape[normalized(dim, len(x.shape))] // chunks)), dim)


class UnbindBackward0(GraphNode):
    """The elements of a dimension; their gradients are stacked, zeros where one has none."""

    __slots__ = ("dimension",)
    name = "UnbindBackward0"

    def __init__(self, x: Tensor, parts: Sequence[Tensor], dimension: int) -> None:
        super().__init__(x.storage.tape, (x,))
        self.dimension = dimension
        for part in parts:
            self.returns(part)

    def run(self, gradients: list[Tensor | None]) -> Gradients:
        shape, dtype = self.outputs[0]
        stacked = [expand(fills.zeros((), dtype, self.tape), shape) if one is None else one for one in gradients]
        return (copies.stack(stacked, self.dimension),)


def unbind(x: Tensor, dim: int = 0) -> list[Tensor]:
    """The elements of a dimension, each without it."""
    dim = normalized(dim, len(x.shape))
    shape, strides = (*x.shape[:dim], *x.shape[dim + 1 :]), (*x.strides[:dim], *x.strides[dim + 1 :])
    parts = [_alias(x, shape, strides, "unbind", number * x.strides[dim]) for number in range(x.shape[dim])]
    x.storage.tape.views -= len(parts) - 1
    if x.records:
        UnbindBackward0(x, parts, dim)
    return parts
