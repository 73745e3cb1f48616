"""Writing into a tensor without a gradient, or into a part of one."""

from __future__ import annotations

from buddysim.training.autograd.tensor import Tensor


def copy_(x: Tensor, y: Tensor) -> Tensor:
    """``x[...] = y``."""
    x.storage.tape.launch("copy_", (y,), (x,))
    x.producer = "copy_"
    return x


def fill_(x: Tensor) -> Tensor:
    """Write one number everywhere."""
    x.storage.tape.launch("fill_", (), (x,))
    x.producer = "fill_"
    return x


def masked_fill_(x: Tensor, mask: Tensor) -> Tensor:
    """Write one number where a mask is true."""
    x.storage.tape.launch("masked_fill_", (x, mask), (x,))
    x.producer = "masked_fill_"
    return x
