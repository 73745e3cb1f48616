"""Values of what CUDA's kernels return, computed by operators that the CPU has: so that a real training runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten


def _layer_norm_backward(
    dy: torch.Tensor, x: torch.Tensor, shape: Any, mean: Any, rstd: Any, weight: Any, bias: Any, mask: list[bool]
) -> Any:
    own = _type_of_statistics(x, weight)
    return aten.native_layer_norm_backward(dy, x, shape, mean.to(own), rstd.to(own), weight, bias, mask)


def _batch_norm(x: torch.Tensor, weight: Any, bias: Any, mean: Any, var: Any, training: bool, *rest: Any) -> Any:
    y, save_mean, save_invstd = aten.native_batch_norm(x, weight, bias, mean, var, training, *rest)
    return (y, save_mean, save_invstd) if training else (y,)


def _batch_norm_backward(
    dy: torch.Tensor, x: torch.Tensor, weight: Any, mean: Any, var: Any, save_mean: Any, save_invstd: Any, *rest: Any
) -> Any:
    own = _type_of_statistics(x, weight)
    return aten.native_batch_norm_backward(dy, x, weight, mean, var, save_mean.to(own), save_invstd.to(own), *rest)


def _type_of_statistics(x: torch.Tensor, weight: torch.Tensor | None) -> torch.dtype:
    """Of the CPU's kernels, whose backward wants them as the forward makes them."""
    return torch.float32 if weight is not None and weight.dtype != x.dtype else x.dtype


def _rms_norm(x: torch.Tensor, shape: Any, weight: torch.Tensor | None, eps: float | None = None) -> Any:
    rows = tuple(range(x.dim() - len(shape), x.dim()))
    wide = x.float()
    rstd = torch.rsqrt(wide.square().mean(rows, keepdim=True) + (torch.finfo(wide.dtype).eps if eps is None else eps))
    return wide * rstd if weight is None else wide * rstd * weight, rstd


def _rms_norm_backward(
    dy: torch.Tensor, x: torch.Tensor, shape: Any, rstd: torch.Tensor, weight: torch.Tensor | None, mask: list[bool]
) -> Any:
    rows, before = tuple(range(x.dim() - len(shape), x.dim())), tuple(range(x.dim() - len(shape)))
    normalised = x.float() * rstd
    dn = dy.float() if weight is None else dy.float() * weight
    dx = rstd * (dn - normalised * (dn * normalised).mean(rows, keepdim=True))
    return dx, (dy.float() * normalised).sum(before)


def _flash(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    *,
    scale: float | None = None,
) -> Any:
    return (_attended(query, key, value, None, is_causal, scale),)


def _flash_backward(
    dy: torch.Tensor, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *rest: Any, scale: Any = None
) -> Any:
    is_causal = rest[7]
    return _gradients(dy, query, key, value, None, is_causal, scale)


def _efficient(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_bias: torch.Tensor | None,
    compute_log_sumexp: bool,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
) -> Any:
    return (_attended(query, key, value, attn_bias, is_causal, scale),)


def _efficient_backward(
    dy: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_bias: torch.Tensor | None,
    out: torch.Tensor,
    logsumexp: torch.Tensor,
    philox_seed: torch.Tensor,
    philox_offset: torch.Tensor,
    dropout_p: float,
    grad_input_mask: list[bool],
    is_causal: bool = False,
    *,
    scale: float | None = None,
) -> Any:
    return _gradients(dy, query, key, value, attn_bias, is_causal, scale)


def _attended(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, bias: torch.Tensor | None, causal: bool, scale: Any
) -> torch.Tensor:
    return _weights(query, key, bias, causal, scale) @ _repeated(value, query).float()


def _weights(
    query: torch.Tensor, key: torch.Tensor, bias: torch.Tensor | None, causal: bool, scale: Any
) -> torch.Tensor:
    """The attention weights: softmax over the keys."""
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    scores = query.float() @ _repeated(key, query).float().transpose(-2, -1) * factor
    if bias is not None:
        scores = scores + bias
    if causal:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(later, -torch.inf)
    return torch.softmax(scores, -1)


def _gradients(
    dy: torch.Tensor, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, bias: Any, causal: bool, scale: Any
) -> tuple[torch.Tensor, ...]:
    """Of query, key, value and bias."""
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    weights = _weights(query, key, bias, causal, scale)
    dw = dy.float() @ _repeated(value, query).float().transpose(-2, -1)
    scores = weights * (dw - (dw * weights).sum(-1, keepdim=True))
    return (
        scores @ _repeated(key, query).float() * factor,
        _summed(scores.transpose(-2, -1) @ query.float() * factor, key),
        _summed(weights.transpose(-2, -1) @ dy.float(), value),
        scores,
    )


def _repeated(tensor: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
    groups = query.shape[1] // tensor.shape[1]
    return tensor if groups == 1 else tensor.repeat_interleave(groups, 1)


def _summed(gradient: torch.Tensor, to: torch.Tensor) -> torch.Tensor:
    """Gradients of repeated heads, summed over the heads that share one."""
    batch, heads, tokens, size = to.shape
    return gradient.view(batch, heads, -1, tokens, size).sum(2)


def _grouped_mm(*args: Any, **kwargs: Any) -> Any:
    return (aten._grouped_mm(*args, **kwargs),)


VALUES: dict[Any, Callable[..., Any]] = {
    aten._grouped_mm.default: _grouped_mm,
    aten.native_batch_norm.default: _batch_norm,
    aten.native_batch_norm_backward.default: _batch_norm_backward,
    aten.native_layer_norm.default: aten.native_layer_norm.default,
    aten.native_layer_norm_backward.default: _layer_norm_backward,
    aten._fused_rms_norm.default: _rms_norm,
    aten._fused_rms_norm_backward.default: _rms_norm_backward,
    aten._scaled_dot_product_flash_attention.default: _flash,
    aten._scaled_dot_product_flash_attention_backward.default: _flash_backward,
    aten._scaled_dot_product_efficient_attention.default: _efficient,
    aten._scaled_dot_product_efficient_attention_backward.default: _efficient_backward,
}
