"""Autocast by CUDA's published lists, with its cache of cast weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from buddysim.training.autograd.dtypes import DType, bfloat16, float32, float64
from buddysim.training.autograd.operators import copies
from buddysim.training.autograd.tape import Tape, active_tape
from buddysim.training.autograd.tensor import Tensor


class Autocast:
    """Context in which operators of CUDA's list cast their inputs.

    Parameters
    ----------
    dtype : half precision of products
    """

    def __init__(self, tape: Tape, dtype: DType = bfloat16) -> None:
        self.tape, self.dtype = tape, dtype
        self.cache: dict[int, tuple[Tensor, Tensor]] = {}

    def __enter__(self) -> Autocast:
        self.tape.autocast = self
        return self

    def __exit__(self, *error: object) -> None:
        """End the casts; the cached weights are dropped, and live on where autograd saves them."""
        self.tape.autocast = None
        self.cache.clear()

    @staticmethod
    def casts(tensor: Tensor) -> bool:
        """Whether autocast changes a tensor at all: not integers, nor double precision."""
        return tensor.dtype.is_floating_point and tensor.dtype is not float64

    def cast(self, tensor: Tensor, dtype: DType) -> Tensor:
        """A tensor in another type; weights in half precision once, until autocast ends."""
        if tensor.dtype is dtype or not self.casts(tensor):
            return tensor
        weight = tensor.requires_grad and tensor.node is None and not tensor.is_view and tensor.dtype is float32
        if not weight or dtype is not self.dtype:
            return copies.to(tensor, dtype)
        cached = self.cache.get(id(tensor))
        if cached is None:
            cached = self.cache[id(tensor)] = tensor, copies.to(tensor, dtype)
        return cached[1]


@contextmanager
def autocast_disabled() -> Iterator[None]:
    """Cast nothing within (``torch.autocast(enabled=False)``)."""
    tape = active_tape()
    before, tape.autocast = tape.autocast, None
    try:
        yield
    finally:
        tape.autocast = before


def autocast_dtype() -> DType | None:
    """The half precision of the autocast that is active; None where none is."""
    active = active_tape().autocast
    return None if active is None else active.dtype
