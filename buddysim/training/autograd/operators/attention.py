"""Fused attention with CUDA's signatures."""

from __future__ import annotations

from buddysim.training.autograd.dtypes import float32, uint64
from buddysim.training.autograd.layout import preserved_strides
from buddysim.training.autograd.node import Gradients, Node
from buddysim.training.autograd.tensor import Tensor


class ScaledDotProductFlashAttentionBackward0(Node):
    __slots__ = ("flops",)
    name = "ScaledDotProductFlashAttentionBackward0"

    def backward(self, gradients: Gradients) -> Gradients:
        (gradient,) = gradients
        assert gradient is not None
        kernel = "_scaled_dot_product_flash_attention_backward"
        results = [
            self.tape.empty(one.shape, one.dtype, kernel, preserved_strides(one.shape, one.strides))
            for one in self.saved[:3]
        ]
        self.tape.launch(kernel, (gradient, *self.saved), results, flops=self.flops * 5 // 2)
        return results


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, causal: bool = False, probability: float = 0.0, backend: str = "flash"
) -> Tensor:
    """Attention of queries (batch x heads x tokens x size) over keys and values, of as many heads or fewer."""
    tape = query.storage.tape
    query, key, value = tape.lower(query), tape.lower(key), tape.lower(value)
    kernel = "_scaled_dot_product_flash_attention"
    batch, heads, tokens, size = query.shape
    # Returned as a view of (batch, tokens, heads, size).
    strides = (tokens * heads * size, size, heads * size, 1)
    result = tape.empty(query.shape, query.dtype, kernel, strides)
    logsumexp = tape.empty((batch, heads, tokens), float32, kernel)
    state = tape.empty((2,), uint64, kernel)
    flops = 4 * batch * heads * tokens * key.shape[2] * size // (2 if causal else 1)
    tape.launch(kernel, (query, key, value), (result, logsumexp, state), flops=flops)
    if query.records or key.records or value.records:
        node = ScaledDotProductFlashAttentionBackward0(tape, (query, key, value))
        node.flops = flops
        node.save("query", query)
        node.save("key", key)
        node.save("value", value)
        node.returns(result)
        node.save("output", result, is_output=True)
        node.save("logsumexp", logsumexp, is_output=True)
        node.save("rng_state", state, is_output=True)
    return result
