"""What CUDA's kernels return, where it isn't what the CPU's do: a dispatch mode below autograd.

Values are computed by the CPU's own kernels. Shapes and types are those of the CUDA signatures in
``torch/_meta_registrations.py`` and of ``aten/src/ATen/native/cuda``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten

_HALF = (torch.bfloat16, torch.float16)


class CudaKernels(TorchDispatchMode):  # type: ignore[misc]
    """Context in which the operators that `_REPLACED` names return what they return on a GPU."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _REPLACED.get(func, func)(*args, **(kwargs or {}))


def _layer_norm(x: torch.Tensor, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    """Mean and deviation are single precision, for half-precision inputs as well (``layer_norm_kernel.cu``)."""
    y, mean, deviation = aten.native_layer_norm(x, shape, weight, bias, eps)
    return (y, mean.float(), deviation.float()) if x.dtype in _HALF else (y, mean, deviation)


def _layer_norm_backward(
    dy: torch.Tensor, x: torch.Tensor, shape: Any, mean: Any, deviation: Any, weight: Any, bias: Any, mask: list[bool]
) -> Any:
    # The CPU's kernel wants statistics in the type that its forward kernel makes them.
    own = x.dtype if x.dtype not in _HALF or weight is None or weight.dtype in _HALF else torch.float32
    return aten.native_layer_norm_backward(dy, x, shape, mean.to(own), deviation.to(own), weight, bias, mask)


def _rms_norm(x: torch.Tensor, shape: Any, weight: torch.Tensor | None, eps: float | None = None) -> Any:
    """The output and one single-precision number a row (``layer_norm_kernel.cu``, `_fused_rms_norm_cuda`)."""
    rows = tuple(range(x.dim() - len(shape), x.dim()))
    wide = x.float()
    scale = torch.rsqrt(wide.square().mean(rows, keepdim=True) + (torch.finfo(wide.dtype).eps if eps is None else eps))
    y = wide * scale
    return (y if weight is None else y * weight).to(x.dtype).contiguous(), scale


def _rms_norm_backward(
    dy: torch.Tensor, x: torch.Tensor, shape: Any, scale: torch.Tensor, weight: torch.Tensor | None, mask: list[bool]
) -> Any:
    rows = tuple(range(x.dim() - len(shape), x.dim()))
    normalised = x.float() * scale
    dn = dy.float() if weight is None else dy.float() * weight
    dx = scale * (dn - normalised * (dn * normalised).mean(rows, keepdim=True))
    dw = None
    if weight is not None and mask[1]:
        before = tuple(range(x.dim() - len(shape)))
        dw = (dy.float() * normalised).sum(before).to(weight.dtype)
    return dx.to(x.dtype).contiguous() if mask[0] else None, dw


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
    """Output, log-sum-exp and the generator's state (`meta__scaled_dot_product_flash_attention`)."""
    out = torch.empty_like(query)
    out.copy_(_attend(query, key, value, None, is_causal, scale))
    device = query.device
    logsumexp = torch.zeros(query.shape[:3], dtype=torch.float32, device=device)
    state = torch.zeros(2, dtype=torch.uint64, device=device)
    unused = torch.zeros((), dtype=torch.uint64, device=device)
    debug = torch.empty(0, dtype=query.dtype, device=device)
    return out, logsumexp, None, None, query.shape[2], key.shape[2], state, unused, debug


def _flash_backward(
    dy: torch.Tensor, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *rest: Any, scale: Any = None
) -> Any:
    causal = rest[7]
    made = _gradients(dy, query, key, value, None, causal, scale)
    return tuple(torch.empty_like(to).copy_(one) for to, one in zip((query, key, value), made, strict=True))


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
    """Output with tokens outside heads, log-sum-exp in rows of 32, seed and offset (``attention.cu``)."""
    batch, heads, tokens = query.shape[:3]
    device = query.device
    out = torch.empty(batch, tokens, heads, value.shape[-1], dtype=query.dtype, device=device).transpose(1, 2)
    out.copy_(_attend(query, key, value, attn_bias, is_causal, scale))
    rows = -(-tokens // 32) * 32 if compute_log_sumexp else 0
    logsumexp = torch.zeros(batch, heads, rows, dtype=torch.float32, device=device)
    seed, offset = (torch.zeros((), dtype=torch.int64, device=device) for _ in range(2))
    return out, logsumexp, seed, offset


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
    made = _gradients(dy, query, key, value, attn_bias, is_causal, scale)
    laid = [
        torch.empty_permuted(to.shape, (0, 2, 1, 3), dtype=to.dtype, device=to.device).copy_(one)
        for to, one in zip((query, key, value), made, strict=True)
    ]
    bias = None
    if attn_bias is not None and grad_input_mask[3]:
        aligned = -(-attn_bias.shape[-1] // 16) * 16
        shape = (*attn_bias.shape[:-1], aligned)
        bias = torch.zeros(shape, dtype=attn_bias.dtype, device=attn_bias.device)[..., : attn_bias.shape[-1]]
        bias.copy_(_bias_gradient(dy, query, key, value, attn_bias, is_causal, scale))
    return (*laid, bias)


def _attend(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, bias: torch.Tensor | None, causal: bool, scale: Any
) -> torch.Tensor:
    return _weights(query, key, bias, causal, scale) @ _repeated(value, query).float()


def _weights(query: torch.Tensor, key: torch.Tensor, bias: torch.Tensor | None, causal: bool, scale: Any) -> Any:
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    scores = query.float() @ _repeated(key, query).float().transpose(-2, -1) * factor
    if bias is not None:
        scores = scores + bias
    if causal:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(later, -torch.inf)
    return torch.softmax(scores, -1)


def _repeated(tensor: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
    groups = query.shape[1] // tensor.shape[1]
    return tensor if groups == 1 else tensor.repeat_interleave(groups, 1)


def _gradients(
    dy: torch.Tensor, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, bias: Any, causal: bool, scale: Any
) -> list[torch.Tensor]:
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    weights = _weights(query, key, bias, causal, scale)
    ds = _score_gradient(dy, weights, value, query)
    wide = [
        ds @ _repeated(key, query).float() * factor,
        ds.transpose(-2, -1) @ query.float() * factor,
        weights.transpose(-2, -1) @ dy.float(),
    ]
    return [_summed(one, to) for one, to in zip(wide, (query, key, value), strict=True)]


def _score_gradient(dy: torch.Tensor, weights: torch.Tensor, value: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
    dp = dy.float() @ _repeated(value, query).float().transpose(-2, -1)
    return weights * (dp - (dp * weights).sum(-1, keepdim=True))


def _bias_gradient(
    dy: torch.Tensor, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, bias: Any, causal: bool, scale: Any
) -> torch.Tensor:
    return _score_gradient(dy, _weights(query, key, bias, causal, scale), value, query)


def _summed(gradient: torch.Tensor, to: torch.Tensor) -> torch.Tensor:
    """Gradients of repeated heads, summed over the heads that share one."""
    if gradient.shape == to.shape:
        return gradient
    batch, heads, tokens, size = to.shape
    return gradient.view(batch, heads, -1, tokens, size).sum(2)


_REPLACED: dict[Any, Callable[..., Any]] = {
    aten.native_layer_norm.default: _layer_norm,
    aten.native_layer_norm_backward.default: _layer_norm_backward,
    aten._fused_rms_norm.default: _rms_norm,
    aten._fused_rms_norm_backward.default: _rms_norm_backward,
    aten._scaled_dot_product_flash_attention.default: _flash,
    aten._scaled_dot_product_flash_attention_backward.default: _flash_backward,
    aten._scaled_dot_product_efficient_attention.default: _efficient,
    aten._scaled_dot_product_efficient_attention_backward.default: _efficient_backward,
}
