"""What ``x[...]`` means: views, one after the other, as PyTorch takes them."""

from __future__ import annotations

from collections.abc import Sequence

from buddysim.training.autograd.operators import views
from buddysim.training.autograd.tensor import Index, Tensor


def subscript(x: Tensor, index: Sequence[Index]) -> Tensor:
    """The part that numbers, slices, None and ... name."""
    listed = list(index)
    if Ellipsis in listed:
        position = listed.index(Ellipsis)
        others = sum(one is not None for one in listed) - 1
        listed[position : position + 1] = [slice(None)] * (len(x.shape) - others)
    dimension = 0
    for one in listed:
        if one is None:
            x = views.unsqueeze(x, dimension)
            dimension += 1
        elif isinstance(one, int):
            x = views.select(x, dimension, one)
        elif isinstance(one, slice):
            if one != slice(None):
                x = views.slice_(x, dimension, one.start, one.stop, one.step or 1)
            dimension += 1
        else:
            raise NotImplementedError("a subscript that is a tensor")
    return x
