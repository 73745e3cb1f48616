"""Attention with sinks: a score of each head next to those of the tokens, so that a token may attend to none."""

from __future__ import annotations

from buddysim.training.architectures.blocks.attention import AttentionCall, Weighted, repeat_kv
from buddysim.training.autograd import functional as F
from buddysim.training.autograd.module import Parameter
from buddysim.training.autograd.tensor import Tensor


def sink_attention(
    sinks: Parameter, call: AttentionCall, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
) -> Weighted:
    """Attention whose softmax is over the scores and the head's sink, in the dtype of the scores."""
    key_states = repeat_kv(key, call.groups)
    value_states = repeat_kv(value, call.groups)
    attn_weights = F.matmul(query, key_states.transpose(2, 3)) * call.scaling
    if mask is not None:
        attn_weights = attn_weights + mask
    every_sink = sinks.reshape(1, -1, 1, 1).expand(query.shape[0], -1, query.shape[-2], -1)
    combined_logits = F.cat([attn_weights, every_sink], -1)
    combined_logits = combined_logits - F.max_values(combined_logits, -1)
    probs = F.softmax(combined_logits, -1, dtype=combined_logits.dtype)
    scores = probs[..., :-1]
    attn_weights = F.dropout(scores, call.dropout).to(value_states.dtype)
    attn_output = F.matmul(attn_weights, value_states)
    attn_output = attn_output.transpose(1, 2).contiguous()
    return attn_output, attn_weights
