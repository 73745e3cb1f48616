"""Operators that PyTorch writes in terms of others, chosen as for a CUDA GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, NoReturn

import torch

aten = torch.ops.aten

Attention = Literal["efficient", "flash"]


@contextmanager
def cuda_composites(attention: Attention) -> Iterator[None]:
    """Context in which dropout, `rms_norm` and attention on the CPU call the operators that they call on a GPU."""
    library = torch.library.Library("aten", "IMPL")
    library.impl("dropout", _dropout, "AutogradCPU")
    library.impl("scaled_dot_product_attention", partial(_attention, attention), "AutogradCPU")
    # With kernels of the CPU's, PyTorch takes the operator's own derivative, and doesn't decompose it.
    library.impl("_fused_rms_norm", _below, "CPU")
    library.impl("_fused_rms_norm_backward", _below, "CPU")
    try:
        yield
    finally:
        library._destroy()


def _below(*args: Any, **kwargs: Any) -> NoReturn:
    raise NotImplementedError("`cuda_kernels` answers this operator: expected it to be a handler")


def _dropout(tensor: torch.Tensor, p: float, train: bool) -> torch.Tensor:
    """Dropout whose mask has a byte an element (``aten/src/ATen/native/Dropout.cpp``)."""
    if p == 0 or not train or tensor.numel() == 0:
        return tensor
    if p == 1:
        return tensor * torch.zeros((), dtype=tensor.dtype, device=tensor.device)
    dropped: torch.Tensor = aten.native_dropout(tensor, p, train)[0]
    return dropped


def _attention(
    preferred: Attention,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """Attention by the first of flash, efficient and math that takes these tensors (``attention.cpp``)."""
    mask = _additive(attn_mask, query)
    repeats = enable_gqa and query.shape[-3] != key.shape[-3]
    if preferred == "flash" and _flash_takes(query, key, value, mask):
        extent = query.shape[-1]
        padded = [_padded(one, 8) for one in (query, key, value)]
        scale = extent**-0.5 if scale is None else scale
        out: torch.Tensor = aten._scaled_dot_product_flash_attention(
            *padded, dropout_p, is_causal, return_debug_mask=False, scale=scale
        )[0]
        return out if out.shape[-1] == extent else out[..., :extent]
    if _efficient_takes(query, key, value, repeats):
        logsumexp = torch.is_grad_enabled() and any(one.requires_grad for one in (query, key, value))
        if mask is not None:
            mask = _aligned(mask).expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])
        fused: torch.Tensor = aten._scaled_dot_product_efficient_attention(
            query, key, value, mask, logsumexp, dropout_p, is_causal, scale=scale
        )[0]
        return fused
    made: torch.Tensor = aten._scaled_dot_product_attention_math(
        query, key, value, mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )[0]
    return made


def _flash_takes(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None) -> bool:
    """No mask, half precision, heads of one size up to 256 (``sdp_utils.cpp``, constraints of flash attention)."""
    sizes = {one.shape[-1] for one in (query, key, value)}
    return (
        mask is None
        and query.dtype in (torch.float16, torch.bfloat16)
        and query.dim() == 4
        and len(sizes) == 1
        and max(sizes) <= 256
        and all(one.stride(-1) == 1 for one in (query, key, value))
    )


def _efficient_takes(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, repeats: bool) -> bool:
    """No grouped queries, and heads of whole 16 bytes (``sdp_utils.cpp``, `check_head_dim_size_mem_efficient`)."""
    aligned = 16 // query.element_size() if query.element_size() < 4 else 4
    sizes = [one.shape[-1] for one in (query, value)]
    return (
        not repeats
        and query.dim() == 4
        and query.dtype in (torch.float16, torch.bfloat16, torch.float32)
        and all(size % aligned == 0 for size in sizes)
        and all(one.stride(-1) == 1 for one in (query, key, value))
    )


def _additive(mask: torch.Tensor | None, query: torch.Tensor) -> torch.Tensor | None:
    """A mask of truth values as numbers to add."""
    if mask is None or mask.dtype != torch.bool:
        return mask
    lowest = aten.scalar_tensor(-torch.inf, dtype=query.dtype, device=query.device)
    return torch.where(mask, 0.0, lowest)


def _padded(tensor: torch.Tensor, multiple: int) -> torch.Tensor:
    missing = -tensor.shape[-1] % multiple
    return torch.nn.functional.pad(tensor, (0, missing)) if missing else tensor


def _aligned(mask: torch.Tensor) -> torch.Tensor:
    """A mask whose rows begin at multiples of 8 elements: a view of a padded copy where they don't."""
    if all(stride % 8 == 0 for stride in mask.stride()[:-1]) and mask.stride(-1) == 1:
        return mask
    return torch.nn.functional.pad(mask, (0, 8 - mask.shape[-1] % 8))[..., : mask.shape[-1]]
