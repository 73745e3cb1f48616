"""Strides: which layouts PyTorch gives to results, and which shapes a view can have.

An extent of 1 may have any stride, as in PyTorch. Strides count elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

from buddysim.base.errors import BuddysimError

Shape = tuple[int, ...]


@lru_cache(maxsize=4096)
def contiguous_strides(shape: Shape) -> Shape:
    """Strides of a dense tensor whose last extent is the fastest."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


@lru_cache(maxsize=4096)
def is_contiguous(shape: Shape, strides: Shape) -> bool:
    """Dense, with the last extent the fastest; empty tensors are."""
    step = 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent == 0:
            return True
        if extent != 1:
            if stride != step:
                return False
            step *= extent
    return True


@lru_cache(maxsize=4096)
def is_dense(shape: Shape, strides: Shape) -> bool:
    """Non-overlapping and dense: contiguous after some order of its dimensions."""
    if is_contiguous(shape, strides):
        return True
    step = 1
    for stride, extent in sorted((stride, extent) for stride, extent in zip(strides, shape, strict=True) if extent > 1):
        if stride != step:
            return False
        step *= extent
    return True


@lru_cache(maxsize=4096)
def view_strides(shape: Shape, strides: Shape, target: Shape) -> Shape | None:
    """Strides of a tensor viewed in another shape of as many elements; None where only a copy can have it."""
    if prod(target) == 0:
        return strides if shape == target else contiguous_strides(target)
    if not shape:
        return (1,) * len(target)
    result = [0] * len(target)
    index = len(target) - 1
    chunk_stride = strides[-1]
    elements = viewed = 1
    for position in range(len(shape) - 1, -1, -1):
        elements *= shape[position]
        if position == 0 or (shape[position - 1] != 1 and strides[position - 1] != elements * chunk_stride):
            while index >= 0 and (viewed < elements or target[index] == 1):
                result[index] = viewed * chunk_stride
                viewed *= target[index]
                index -= 1
            if viewed != elements:
                return None
            if position > 0:
                chunk_stride = strides[position - 1]
                elements = viewed = 1
    return tuple(result) if index == -1 else None


@lru_cache(maxsize=4096)
def broadcast(first: Shape, second: Shape) -> Shape:
    """The shape of an element-wise result.

    Raises
    ------
    BuddysimError
        extents that differ and aren't 1
    """
    if first == second:
        return first
    if len(first) < len(second):
        first, second = second, first
    result = list(first)
    for position in range(1, len(second) + 1):
        extent, other = first[-position], second[-position]
        if extent != other:
            if extent != 1 and other != 1:
                raise BuddysimError(f"shapes {first} and {second}: extents {extent} and {other} don't fit together")
            result[-position] = other if extent == 1 else extent
    return tuple(result)


@lru_cache(maxsize=4096)
def expanded_strides(shape: Shape, strides: Shape, target: Shape) -> Shape:
    """Strides of a tensor broadcast to `target`: 0 along extents that are repeated."""
    missing = len(target) - len(shape)
    result = []
    for position, extent in enumerate(target):
        own = position - missing
        if own < 0:
            result.append(0)
        elif shape[own] == extent:
            result.append(strides[own])
        elif shape[own] == 1:
            result.append(0)
        else:
            raise BuddysimError(f"shape {shape} can't be expanded to {target}")
    return tuple(result)


@lru_cache(maxsize=4096)
def pointwise_strides(shape: Shape, operands: tuple[tuple[Shape, Shape], ...]) -> Shape:
    """Strides of an element-wise result, by the rules of PyTorch's ``TensorIterator``.

    Parameters
    ----------
    operands : shape and strides of each input, in order, without numbers of Python's
    """
    if all(own == shape for own, _ in operands):
        if all(is_contiguous(*operand) for operand in operands):
            return contiguous_strides(shape)
        first = operands[0][1]
        if all(strides == first for _, strides in operands) and is_dense(*operands[0]):
            return first
    if len(shape) < 2:
        return contiguous_strides(shape)
    layouts = [_iterated(own, strides, shape) for own, strides in operands]
    order = list(range(len(shape) - 1, -1, -1))  # fastest first
    for position in range(1, len(order)):
        current = position
        for earlier in range(position - 1, -1, -1):
            swap = _order(layouts, shape, order[earlier], order[current])
            if swap > 0:
                order[earlier], order[current] = order[current], order[earlier]
                current = earlier
            elif swap < 0:
                break
    strides, step = [0] * len(shape), 1
    for dimension in order:
        strides[dimension] = step
        step *= shape[dimension]
    return tuple(strides) if order != list(range(len(shape) - 1, -1, -1)) else contiguous_strides(shape)


def _iterated(own: Shape, strides: Shape, shape: Shape) -> Sequence[int]:
    missing = len(shape) - len(own)
    return [
        0
        if position < missing or (own[position - missing] == 1 and shape[position] != 1)
        else strides[position - missing]
        for position in range(len(shape))
    ]


def _order(layouts: Sequence[Sequence[int]], shape: Shape, inner: int, outer: int) -> int:
    """1 where `inner` belongs behind `outer`, -1 where before, 0 where no operand says."""
    for strides in layouts:
        first, second = strides[inner], strides[outer]
        if first == 0 or second == 0:
            continue
        if first < second:
            return -1
        if first > second or shape[inner] > shape[outer]:
            return 1
    return 0


def preserved_strides(shape: Shape, strides: Shape) -> Shape:
    """Strides of ``empty_like``: the same where dense, else those that an element-wise result has."""
    return strides if is_dense(shape, strides) else pointwise_strides(shape, ((shape, strides),))


def normalized(dimension: int, n_dimensions: int) -> int:
    """A dimension counted from the front."""
    if not -max(n_dimensions, 1) <= dimension < max(n_dimensions, 1):
        raise BuddysimError(f"dimension {dimension} of a tensor of {n_dimensions}")
    return dimension + n_dimensions if dimension < 0 else dimension


def is_channels_last(shape: Shape, strides: Shape) -> bool:
    """Whether PyTorch takes four dimensions for an image whose channels lie next to each other (`MemoryFormat.h`)."""
    if len(shape) != 4 or strides[1] == 0:
        return False
    least = 0
    for dim in (1, 3, 2, 0):
        if strides[dim] < least or (dim == 0 and least == strides[1]):
            return False
        least = strides[dim] * max(1, shape[dim])
    return True


def channels_last_strides(shape: Shape) -> Shape:
    """Strides of an image whose channels lie next to each other."""
    _, channels, height, width = shape
    return channels * height * width, 1, channels * width, channels
