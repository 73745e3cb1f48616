"""Powers whose exponents are tensors. Without a gradient."""

from __future__ import annotations

from buddysim.training.autograd.dtypes import float32
from buddysim.training.autograd.operators.pointwise import Operand, pointwise
from buddysim.training.autograd.tensor import Tensor


def power(base: Operand, exponents: Tensor) -> Tensor:
    """``base ** exponents``, in single precision."""
    return pointwise("pow", base, exponents, dtype=float32)
