"""Views: tensors on the storage of another one, and the reshaping that copies where no view can be had."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from buddysim.base.errors import BuddysimError
from buddysim.training.autograd.layout import Shape, expanded_strides, normalized, view_strides
from buddysim.training.autograd.node import Gradients, Node
from buddysim.training.autograd.operators import copies, reductions
from buddysim.training.autograd.tensor import Tensor


def _alias(x: Tensor, shape: Shape, strides: Shape, producer: str, offset: int = 0) -> Tensor:
    x.storage.tape.views += 1
    result = Tensor(shape, strides, x.offset + offset, x.dtype, x.storage, producer)
    result.is_view = True
    return result


class _ViewNode(Node):
    """A view whose gradient needs numbers alone."""

    __slots__ = ("arguments",)

    def __init__(self, x: Tensor, result: Tensor, *arguments: object) -> None:
        super().__init__(x.storage.tape, (x,))
        self.arguments = arguments
        self.returns(result)


class ViewBackward0(_ViewNode):
    name = "ViewBackward0"

    def backward(self, gradients: Gradients) -> Gradients:
        (gradient,), (shape,) = gradients, self.arguments
        return (reshape(gradient, shape),)


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


def unsafe_view(x: Tensor, shape: Sequence[int]) -> Tensor:
    """A view that autograd takes for a tensor of its own."""
    target = inferred(x, shape)
    strides = view_strides(x.shape, x.strides, target)
    assert strides is not None
    result = _alias(x, target, strides, "_unsafe_view")
    result.is_view = False
    if x.records:
        UnsafeViewBackward0(x, result, x.shape)
    return result


def reshape(x: Tensor, shape: Sequence[int]) -> Tensor:
    """A view where the layout allows it, else a copy."""
    target = inferred(x, shape)
    if view_strides(x.shape, x.strides, target) is not None:
        return view(x, target)
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


class TBackward0(_ViewNode):
    name = "TBackward0"

    def backward(self, gradients: Gradients) -> Gradients:
        (gradient,) = gradients
        return (t(gradient),)


def t(x: Tensor) -> Tensor:
    """The transpose of a matrix."""
    result = _alias(x, x.shape[::-1], x.strides[::-1], "t")
    if x.records:
        TBackward0(x, result)
    return result


class TransposeBackward0(_ViewNode):
    name = "TransposeBackward0"

    def backward(self, gradients: Gradients) -> Gradients:
        (gradient,), (first, second) = gradients, self.arguments
        return (transpose(gradient, first, second),)


def transpose(x: Tensor, first: int, second: int) -> Tensor:
    """Two dimensions exchanged."""
    shape, strides = list(x.shape), list(x.strides)
    shape[first], shape[second] = shape[second], shape[first]
    strides[first], strides[second] = strides[second], strides[first]
    result = _alias(x, tuple(shape), tuple(strides), "transpose")
    if x.records:
        TransposeBackward0(x, result, first, second)
    return result


class PermuteBackward0(_ViewNode):
    name = "PermuteBackward0"

    def backward(self, gradients: Gradients) -> Gradients:
        (gradient,), (order,) = gradients, self.arguments
        inverse = [0] * len(order)
        for position, dimension in enumerate(order):
            inverse[dimension] = position
        return (permute(gradient, inverse),)


def permute(x: Tensor, order: Sequence[int]) -> Tensor:
    """Dimensions in another order."""
    order = [normalized(dimension, len(x.shape)) for dimension in order]
    result = _alias(x, tuple([x.shape[one] for one in order]), tuple([x.strides[one] for one in order]), "permute")
    if x.records:
        PermuteBackward0(x, result, order)
    return result


class ExpandBackward0(_ViewNode):
    name = "ExpandBackward0"

    def backward(self, gradients: Gradients) -> Gradients:
        (gradient,), (shape,) = gradients, self.arguments
        return (reductions.sum_to(gradient, shape),)


def expand(x: Tensor, shape: Sequence[int]) -> Tensor:
    """Extents of 1, and new ones in front, repeated without a copy; -1 leaves an extent."""
    missing = len(shape) - len(x.shape)
    target = tuple(x.shape[position - missing] if extent == -1 else extent for position, extent in enumerate(shape))
    result = _alias(x, target, expanded_strides(x.shape, x.strides, target), "expand")
    if x.records:
        ExpandBackward0(x, result, x.shape)
    return result


class UnsqueezeBackward0(_ViewNode):
    name = "UnsqueezeBackward0"

    def backward(self, gradients: Gradients) -> Gradients:
        (gradient,), (dimension,) = gradients, self.arguments
        return (squeeze(gradient, dimension),)


def unsqueeze(x: Tensor, dimension: int) -> Tensor:
    """A new extent of 1."""
    dimension = normalized(dimension, len(x.shape) + 1)
    stride = x.shape[dimension] * x.strides[dimension] if dimension < len(x.shape) else 1
    result = _alias(
        x,
        (*x.shape[:dimension], 1, *x.shape[dimension:]),
        (*x.strides[:dimension], stride, *x.strides[dimension:]),
        "unsqueeze",
    )
    if x.records:
        UnsqueezeBackward0(x, result, dimension)
    return result


class SqueezeBackward1(_ViewNode):
    name = "SqueezeBackward1"

    def backward(self, gradients: Gradients) -> Gradients:
        (gradient,), (dimension, extent) = gradients, self.arguments
        return (unsqueeze(gradient, dimension) if extent == 1 else gradient,)


def squeeze(x: Tensor, dimension: int) -> Tensor:
    """One extent of 1 dropped; another extent stays."""
    dimension = normalized(dimension, len(x.shape))
    extent = x.shape[dimension] if x.shape else 0
    shape, strides = x.shape, x.strides
    if extent == 1:
        shape = (*shape[:dimension], *shape[dimension + 1 :])
        strides = (*strides[:dimension], *strides[dimension + 1 :])
    result = _alias(x, shape, strides, "squeeze")
    if x.records:
        SqueezeBackward1(x, result, dimension, extent)
    return result


class SliceBackward0(_ViewNode):
    name = "SliceBackward0"

    def backward(self, gradients: Gradients) -> Gradients:
        (gradient,), (shape,) = gradients, self.arguments
        return (copies.scattered_into_zeros(gradient, shape, "slice_backward"),)


def slice_(x: Tensor, dimension: int, start: int, end: int, step: int = 1) -> Tensor:
    """Elements `start` to `end` of a dimension; negative numbers count from its end."""
    dimension = normalized(dimension, len(x.shape))
    start, end, step = slice(start, end, step).indices(x.shape[dimension])
    extent = max(0, -(-(end - start) // step))
    stride = x.strides[dimension]
    result = _alias(
        x,
        (*x.shape[:dimension], extent, *x.shape[dimension + 1 :]),
        (*x.strides[:dimension], stride * step, *x.strides[dimension + 1 :]),
        "slice",
        start * stride,
    )
    if x.records:
        SliceBackward0(x, result, x.shape)
    return result


class SelectBackward0(_ViewNode):
    name = "SelectBackward0"

    def backward(self, gradients: Gradients) -> Gradients:
        (gradient,), (shape,) = gradients, self.arguments
        return (copies.scattered_into_zeros(gradient, shape, "select_backward"),)


def select(x: Tensor, dimension: int, index: int) -> Tensor:
    """One element of a dimension, which is dropped."""
    dimension = normalized(dimension, len(x.shape))
    extent = x.shape[dimension]
    if not -extent <= index < extent:
        raise BuddysimError(f"element {index} of an extent of {extent}")
    result = _alias(
        x,
        (*x.shape[:dimension], *x.shape[dimension + 1 :]),
        (*x.strides[:dimension], *x.strides[dimension + 1 :]),
        "select",
        index % extent * x.strides[dimension],
    )
    if x.records:
        SelectBackward0(x, result, x.shape)
    return result


class SplitBackward0(Node):
    """Parts of a dimension; their gradients are joined, zeros where a part has none."""

    __slots__ = ("dimension", "parts")
    name = "SplitBackward0"

    def __init__(self, x: Tensor, parts: Sequence[Tensor], dimension: int) -> None:
        super().__init__(x.storage.tape, (x,))
        self.dimension = dimension
        self.parts = [part.shape for part in parts]
        for part in parts:
            self.returns(part)

    def backward(self, gradients: Gradients) -> Gradients:
        like = next(one for one in gradients if one is not None)
        joined = [
            copies.zeros(self.tape, shape, like.dtype) if one is None else one
            for one, shape in zip(gradients, self.parts, strict=True)
        ]
        return (copies.cat(joined, self.dimension),)


class SplitWithSizesBackward0(SplitBackward0):
    name = "SplitWithSizesBackward0"


def split(x: Tensor, size: int | Sequence[int], dimension: int = 0) -> list[Tensor]:
    """Parts of `size` elements (the last one may be smaller), or of the sizes that are listed."""
    dimension = normalized(dimension, len(x.shape))
    extent = x.shape[dimension]
    sizes = [min(size, extent - start) for start in range(0, extent, size)] if isinstance(size, int) else list(size)
    if sum(sizes) != extent:
        raise BuddysimError(f"parts of {sizes} elements of an extent of {extent}")
    producer, node = (
        ("split", SplitBackward0) if isinstance(size, int) else ("split_with_sizes", SplitWithSizesBackward0)
    )
    parts, start = [], 0
    for number in sizes:
        shape = (*x.shape[:dimension], number, *x.shape[dimension + 1 :])
        parts.append(_alias(x, shape, x.strides, producer, start * x.strides[dimension]))
        start += number
    x.storage.tape.views -= len(parts) - 1
    if x.records:
        node(x, parts, dimension)
    return parts


def chunk(x: Tensor, count: int, dimension: int = 0) -> list[Tensor]:
    """At most `count` parts of one size."""
    extent = x.shape[normalized(dimension, len(x.shape))]
    return split(x, max(1, -(-extent // count)), dimension)


class UnbindBackward0(Node):
    """The elements of a dimension; their gradients are stacked, zeros where one has none."""

    __slots__ = ("dimension", "part")
    name = "UnbindBackward0"

    def __init__(self, x: Tensor, parts: Sequence[Tensor], dimension: int) -> None:
        super().__init__(x.storage.tape, (x,))
        self.dimension, self.part = dimension, parts[0].shape
        for part in parts:
            self.returns(part)

    def backward(self, gradients: Gradients) -> Gradients:
        like = next(one for one in gradients if one is not None)
        stacked = [copies.zeros(self.tape, self.part, like.dtype) if one is None else one for one in gradients]
        return (copies.stack(stacked, self.dimension),)


def unbind(x: Tensor, dimension: int = 0) -> list[Tensor]:
    """The elements of a dimension, each without it."""
    dimension = normalized(dimension, len(x.shape))
    shape = (*x.shape[:dimension], *x.shape[dimension + 1 :])
    strides = (*x.strides[:dimension], *x.strides[dimension + 1 :])
    parts = [_alias(x, shape, strides, "unbind", number * x.strides[dimension]) for number in range(x.shape[dimension])]
    x.storage.tape.views -= len(parts) - 1
    if x.records:
        UnbindBackward0(x, parts, dimension)
    return parts
