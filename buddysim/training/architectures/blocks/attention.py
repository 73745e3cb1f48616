"""Attention: written out (scores in memory), or as PyTorch's fused operator.

Functions return the result and the weights of the tokens (None of the fused operator), as transformers' do: callers
that keep the weights in a variable hold their memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from buddysim.training.autograd import functional as F
from buddysim.training.autograd.dtypes import float32
from buddysim.training.autograd.operators.attention import Kernel
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.options.config_options import ConfigOptions

#: Features of a head up to which FlashAttention's kernels exist (PyTorch, `sdp_utils.cpp`).
LARGEST_FLASH_HEAD = 256


@dataclass(frozen=True)
class AttentionCall:
    """What a layer says about its attention.

    Attributes
    ----------
    scaling : of the scores
    groups : query heads for each head of keys and values
    dropout : probability
    softcap : scores are limited to this by a tanh
    causal : tokens attend to earlier ones alone
    """

    scaling: float
    groups: int = 1
    dropout: float = 0.0
    softcap: float | None = None
    causal: bool = True


Weighted = tuple[Tensor, Tensor | None]
Attention = Callable[[AttentionCall, Tensor, Tensor, Tensor, Tensor | None], Weighted]


def repeat_kv(hidden_states: Tensor, groups: int) -> Tensor:
    """Repeat the heads of keys or values for each query head of their group: a copy of full width."""
    batch, heads, length, features = hidden_states.shape
    if groups == 1:
        return hidden_states
    hidden_states = hidden_states[:, :, None, :, :].expand(batch, heads, groups, length, features)
    return hidden_states.reshape(batch, heads * groups, length, features)


def eager_attention(call: AttentionCall, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Weighted:
    """Attention of Llama and most others: keys and values repeated, softmax in fp32.

    The result has the shape (batch, tokens, heads, features).
    """
    key_states = repeat_kv(key, call.groups)
    value_states = repeat_kv(value, call.groups)
    attn_weights = F.matmul(query, key_states.transpose(2, 3)) * call.scaling
    if call.softcap is not None:
        attn_weights = attn_weights / call.softcap
        attn_weights = F.tanh(attn_weights)
        attn_weights = attn_weights * call.softcap
    if mask is not None:
        attn_weights = attn_weights + mask
    attn_weights = F.softmax(attn_weights, dim=-1, dtype=float32).to(query.dtype)
    attn_weights = F.dropout(attn_weights, call.dropout)
    attn_output = F.matmul(attn_weights, value_states)
    attn_output = attn_output.transpose(1, 2).contiguous()
    return attn_output, attn_weights


def plain_attention(call: AttentionCall, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Weighted:
    """Attention of BERT: softmax in the dtype of the scores."""
    attn_weights = F.matmul(query, key.transpose(2, 3)) * call.scaling
    if mask is not None:
        attn_weights = attn_weights + mask
    attn_weights = F.softmax(attn_weights, -1)
    attn_weights = F.dropout(attn_weights, call.dropout)
    attn_output = F.matmul(attn_weights, value)
    attn_output = attn_output.transpose(1, 2).contiguous()
    return attn_output, attn_weights


def fused_attention(
    call: AttentionCall, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, kernel: Kernel
) -> Weighted:
    """Attention as PyTorch's operator: keys and values repeated only where a mask is there.

    The result has the shape (batch, tokens, heads, features).
    """
    grouped = False
    if call.groups > 1:
        if mask is None and key.shape[-1] == value.shape[-1] <= LARGEST_FLASH_HEAD:
            grouped = True
        else:
            key = repeat_kv(key, call.groups)
            value = repeat_kv(value, call.groups)
    attn_output = F.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=mask,
        dropout_p=call.dropout,
        scale=call.scaling,
        is_causal=query.shape[2] > 1 and mask is None and call.causal,
        enable_gqa=grouped,
        kernel=kernel,
    )
    attn_output = attn_output.transpose(1, 2).contiguous()
    return attn_output, None


def attend(
    options: ConfigOptions,
    call: AttentionCall,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    eager: Attention = eager_attention,
) -> Weighted:
    """Attention as the options have it; `eager` is how the class writes it out.

    Parameters
    ----------
    query, key, value : of shape (batch, heads, tokens, features)
    mask : of `masks`

    Returns
    -------
    tuple of a Tensor of shape (batch, tokens, heads, features), and the weights
    """
    if options.attention in (None, "eager"):
        return eager(call, query, key, value, mask)
    kernel: Kernel = "efficient" if options.attention == "efficient" else "flash"  # the first that takes the tensors
    return fused_attention(call, query, key, value, mask, kernel)
