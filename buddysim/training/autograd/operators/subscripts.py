"""What ``x[...]`` means: views, one after the other, as PyTorch takes them."""

from __future__ import annotations

from buddysim.training.autograd.operators import views
from buddysim.training.autograd.tensor import Index, Tensor


def subscript(x: Tensor, index: Index | tuple[Index, ...]) -> Tensor:
    """The part that numbers, slices, None and ... name; of several that leave everything, an alias."""
    if isinstance(index, slice):
        return views.slice_(x, 0, index.start, index.stop, index.step or 1)
    listed: list[Index] = list(index) if isinstance(index, tuple) else [index]
    if Ellipsis in listed:
        position = listed.index(Ellipsis)
        others = sum(one is not None for one in listed) - 1
        listed[position : position + 1] = [slice(None)] * (len(x.shape) - others)
    part, dimension = x, 0
    for one in listed:
        if one is None:
            part = views.unsqueeze(part, dimension)
            dimension += 1
        elif isinstance(one, int):
            part = views.select(part, dimension, one)
        elif isinstance(one, slice):
            part = _sliced(part, dimension, one)
            dimension += 1
        else:
            raise NotImplementedError("a subscript that is a tensor")
    return views.alias(x) if part is x else part


def _sliced(x: Tensor, dimension: int, part: slice) -> Tensor:
    """The elements of a slice; the tensor itself where these are all."""
    extent = x.shape[dimension]
    if part.indices(extent) == (0, extent, 1):
        return x
    return views.slice_(x, dimension, part.start, part.stop, part.step or 1)
