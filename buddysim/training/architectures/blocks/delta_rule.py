"""The gated delta rule by chunks of a sequence, as transformers writes it in PyTorch, without the package fla.

Within a chunk all updates are one triangular system; a state goes from chunk to chunk, and the last one is dropped.
"""

from __future__ import annotations

from buddysim.training.autograd import functional as F
from buddysim.training.autograd.dtypes import bool8, float32
from buddysim.training.autograd.tensor import Tensor

CHUNK = 64


def gated_delta_rule(query: Tensor, key: Tensor, value: Tensor, g: Tensor, beta: Tensor) -> Tensor:
    """Return the result for each token, of shape (batch, tokens, value heads, features).

    Parameters
    ----------
    query, key : of shape (batch, tokens, heads, features), normalized here
    value : of a multiple of these heads
    g : logarithm of the decay, of each value head
    beta : how much a token changes the state
    """
    initial_dtype, (batch, tokens, key_heads, features) = query.dtype, key.shape
    heads, decay = value.shape[2], g
    if key_heads != heads:
        query = query.repeat_interleave(heads // key_heads, 2)
        key = key.repeat_interleave(heads // key_heads, 2)
    query, key, value, beta, decay = [
        F.to_contiguous(x.transpose(1, 2), float32) for x in (query, key, value, beta, decay)
    ]
    query = _normalized(query)
    key = _normalized(key)
    query = query * features**-0.5
    pad_size = -tokens % CHUNK
    query, key, value = (F.pad(x, (0, 0, 0, pad_size)) for x in (query, key, value))
    beta, decay = (F.pad(x, (0, pad_size)) for x in (beta, decay))
    v_beta = value * beta.unsqueeze(-1)
    k_beta = key * beta.unsqueeze(-1)
    query, key, k_beta, v_beta = [
        x.reshape(x.shape[0], x.shape[1], -1, CHUNK, x.shape[-1]) for x in (query, key, k_beta, v_beta)
    ]
    decay = decay.reshape(decay.shape[0], decay.shape[1], -1, CHUNK)
    strictly_upper_mask = F.triu(F.ones((CHUNK, CHUNK), dtype=bool8), 1)
    cum_decay = F.cumsum(decay, 3)
    pairwise_decay = cum_decay.unsqueeze(4) - cum_decay.unsqueeze(3)
    pairwise_decay = pairwise_decay.masked_fill(strictly_upper_mask, -1e30)
    pairwise_decay = pairwise_decay.exp()
    ut_system = (k_beta @ key.transpose(-1, -2)) * pairwise_decay
    intra_chunk_attn = (query @ key.transpose(-1, -2)) * pairwise_decay
    decayed_k_beta = k_beta * cum_decay.exp().unsqueeze(-1)
    new_values = F.solve_triangular(ut_system, v_beta)
    k_cumdecay = F.solve_triangular(ut_system, decayed_k_beta)
    state = F.zeros((batch, heads, features, value.shape[-1]), new_values.dtype)
    core_attn_out = F.zeros_like(new_values)
    query = query * cum_decay.exp().unsqueeze(-1)
    key = key * (cum_decay[..., -1:] - cum_decay).exp().unsqueeze(-1)
    chunk_decay = cum_decay[..., -1].exp()[..., None, None]
    for index in range(new_values.shape[2]):
        v_new = new_values[:, :, index] - k_cumdecay[:, :, index] @ state
        inter_chunk_attn = query[:, :, index] @ state
        F.copy_into(core_attn_out, inter_chunk_attn + intra_chunk_attn[:, :, index] @ v_new, 2, index)
        state = state * chunk_decay[:, :, index] + key[:, :, index].transpose(-1, -2) @ v_new
    del state
    core_attn_out = core_attn_out.reshape(batch, heads, -1, value.shape[-1])
    core_attn_out = core_attn_out[:, :, :tokens]
    return F.to_contiguous(core_attn_out.transpose(1, 2), initial_dtype)


def _normalized(x: Tensor) -> Tensor:
    inv_norm = ((x * x).sum(dim=-1, keepdim=True) + 1e-6).rsqrt()
    return x * inv_norm
