"""Shapes, layouts and types of what CUDA's kernels return, operator by operator.

From ``torch/_meta_registrations.py``, which describes CUDA's kernels for tracers, and for the norms from
``aten/src/ATen/native/cuda/layer_norm_kernel.cu``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten

Shape = tuple[int, ...]


def _empty(shape: Shape, like: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype or like.dtype, device=like.device)


def _dense(tensor: torch.Tensor | None, needed: bool = True) -> torch.Tensor | None:
    return _empty(tuple(tensor.shape), tensor) if needed and tensor is not None else None


def _statistic(x: torch.Tensor, shape: Any) -> torch.Tensor:
    """A number for each row: single precision for half-precision inputs as well."""
    rows = x.shape[: x.dim() - len(shape)]
    double = x.dtype == torch.float64
    return _empty((*rows, *(1 for _ in shape)), x, torch.float64 if double else torch.float32)


def _layer_norm(x: torch.Tensor, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    return _dense(x), _statistic(x, shape), _statistic(x, shape)


def _layer_norm_backward(
    dy: torch.Tensor, x: torch.Tensor, shape: Any, mean: Any, rstd: Any, weight: Any, bias: Any, mask: list[bool]
) -> Any:
    return tuple(_dense(one, needed) for one, needed in zip((x, weight, bias), mask, strict=True))


def _batch_norm(x: torch.Tensor, *rest: Any) -> Any:
    """Of CUDA's own kernel, not cuDNN's; statistics are there without training as well."""
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    return torch.empty_like(x), _empty((x.shape[1],), x, wide), _empty((x.shape[1],), x, wide)


def _batch_norm_backward(dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor | None, *rest: Any) -> Any:
    mask = rest[6]
    return torch.empty_like(x) if mask[0] else None, _dense(weight, mask[1]), _dense(weight, mask[2])


def _rms_norm(x: torch.Tensor, shape: Any, weight: torch.Tensor | None, eps: float | None = None) -> Any:
    return _dense(x), _statistic(x, shape)


def _rms_norm_backward(
    dy: torch.Tensor, x: torch.Tensor, shape: Any, rstd: torch.Tensor, weight: torch.Tensor | None, mask: list[bool]
) -> Any:
    return _dense(x, mask[0]), _dense(weight, mask[1])


def _flash(query: torch.Tensor, key: torch.Tensor, *rest: Any, **keywords: Any) -> Any:
    """Output, log-sum-exp, the generator's state (`meta__scaled_dot_product_flash_attention`)."""
    logsumexp = _empty(tuple(query.shape[:3]), query, torch.float32)
    state, unused = _empty((2,), query, torch.uint64), _empty((), query, torch.uint64)
    debug = _empty((0,), query)
    return torch.empty_like(query), logsumexp, None, None, query.shape[2], key.shape[2], state, unused, debug


def _flash_backward(dy: torch.Tensor, *inputs: Any, **keywords: Any) -> Any:
    return tuple(torch.empty_like(one) for one in inputs[:3])


def _efficient(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_bias: Any,
    compute_log_sumexp: bool,
    *rest: Any,
    **keywords: Any,
) -> Any:
    """Output with tokens outside heads, log-sum-exp in rows of 32 (`meta__scaled_dot_product_efficient_attention`).

    The generator's seed and offset are numbers of the host.
    """
    batch, heads, tokens = query.shape[:3]
    out = _empty((batch, tokens, heads, value.shape[-1]), query).transpose(1, 2)
    rows = -(-tokens // 32) * 32 if compute_log_sumexp else 0
    seed, offset = _empty((), query, torch.int64), _empty((), query, torch.int64)
    return out, _empty((batch, heads, rows), query, torch.float32), seed, offset


def _efficient_backward(
    dy: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    bias: torch.Tensor | None,
    *rest: Any,
    **keywords: Any,
) -> Any:
    made = [
        torch.empty_permuted(one.shape, (0, 2, 1, 3), dtype=one.dtype, device=one.device) for one in (query, key, value)
    ]
    mask = rest[5]
    if bias is None or not mask[3]:
        return (*made, None)
    aligned = -(-bias.shape[-1] // 16) * 16
    return (*made, _empty((*bias.shape[:-1], aligned), bias)[..., : bias.shape[-1]])


def _grouped_mm(
    a: torch.Tensor,
    b: torch.Tensor,
    offs: torch.Tensor | None = None,
    bias: Any = None,
    out_dtype: torch.dtype | None = None,
) -> Any:
    """A product of each group, in rows of whole 16 bytes (`_create_grouped_mm_output_tensor`)."""
    groups: Shape = ()
    if a.dim() == b.dim():
        groups = (a.shape[0] if offs is None else offs.shape[0],)
    shape = (*groups, a.shape[-2], b.shape[-1])
    dtype = out_dtype or a.dtype
    aligned = 16 // dtype.itemsize
    strides = [-(-shape[-1] // aligned) * aligned, 1]
    if groups:
        strides.insert(0, shape[-2] * strides[0])
    return (torch.empty_strided(shape, strides, dtype=dtype, device=a.device),)


SIGNATURES: dict[Any, Callable[..., Any]] = {
    aten._grouped_mm.default: _grouped_mm,
    aten.native_batch_norm.default: _batch_norm,
    aten.native_batch_norm_backward.default: _batch_norm_backward,
    aten.native_layer_norm.default: _layer_norm,
    aten.native_layer_norm_backward.default: _layer_norm_backward,
    aten._fused_rms_norm.default: _rms_norm,
    aten._fused_rms_norm_backward.default: _rms_norm_backward,
    aten._scaled_dot_product_flash_attention.default: _flash,
    aten._scaled_dot_product_flash_attention_backward.default: _flash_backward,
    aten._scaled_dot_product_efficient_attention.default: _efficient,
    aten._scaled_dot_product_efficient_attention_backward.default: _efficient_backward,
}
