"""Work of an operation: its matrix products, and its other floating-point operations."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry

from buddysim.training.autograd.records import Product

aten = torch.ops.aten


def flops_of(func: Any, args: Any, kwargs: Any, result: Any) -> int:
    """By PyTorch's own counter, half of causal attention; 0 for what it doesn't count."""
    formula = flop_registry.get(func.overloadpacket)
    if formula is None:
        return 0
    flops = int(formula(*args, **kwargs, out_val=result))
    names = [argument.name for argument in func._schema.arguments]
    return flops // 2 if {**dict(zip(names, args, strict=False)), **kwargs}.get("is_causal") else flops


def products_of(func: Any, args: Any) -> tuple[Product, ...]:
    """The matrix products that an operator is; none for attention, whose products are one kernel."""
    reader = _READERS.get(func.overloadpacket)
    return reader(*args) if reader is not None else ()


def _mm(x: torch.Tensor, y: torch.Tensor, *rest: Any) -> tuple[Product, ...]:
    return (Product(x.shape[-2], y.shape[-1], x.shape[-1], prod(x.shape[:-2])),)


def _added(bias: torch.Tensor, x: torch.Tensor, y: torch.Tensor, *rest: Any) -> tuple[Product, ...]:
    return _mm(x, y)


def _grouped(x: torch.Tensor, y: torch.Tensor, offsets: torch.Tensor, *rest: Any) -> tuple[Product, ...]:
    """Groups of equal size: how many rows each has is a matter of values."""
    groups = offsets.shape[0]
    if x.dim() == y.dim() == 2:
        return (Product(x.shape[0], y.shape[1], -(-x.shape[1] // groups), groups),)
    return (Product(-(-x.shape[-2] // groups), y.shape[-1], x.shape[-1], groups),)


_READERS: dict[Any, Callable[..., tuple[Product, ...]]] = {
    aten.mm: _mm,
    aten.bmm: _mm,
    aten.addmm: _added,
    aten.baddbmm: _added,
    aten._grouped_mm: _grouped,
}
