"""BLOOM: `modeling_bloom.py` of transformers, which has no fused attention for it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

from buddysim.training.architectures.architecture import Architecture
from buddysim.training.architectures.blocks.layers import Dropout, Embedding, LayerNorm, Linear
from buddysim.training.architectures.blocks.masks import causal_mask
from buddysim.training.architectures.language_model import CausalModel
from buddysim.training.architectures.model_config import (
    Depth,
    ModelConfig,
    Positive,
    Probability,
    Size,
    Vocabulary,
    check_multiple,
)
from buddysim.training.autograd import functional as F
from buddysim.training.autograd.dtypes import float32, int32
from buddysim.training.autograd.function import Function
from buddysim.training.autograd.module import Module
from buddysim.training.autograd.node import Gradients
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.options.config_options import Attention, ConfigOptions


class BloomConfig(ModelConfig):
    """Keys of `BloomConfig`."""

    ALIASES: ClassVar[Mapping[str, str]] = {
        "num_hidden_layers": "n_layer",
        "num_attention_heads": "n_head",
        "n_embed": "hidden_size",
    }
    REFUSED: ClassVar[Mapping[str, tuple[object, ...]]] = {"slow_but_exact": (None, False)}

    vocab_size: Vocabulary
    hidden_size: Size
    n_layer: Depth
    n_head: Size
    layer_norm_epsilon: Positive = 1e-5
    apply_residual_connection_post_layernorm: bool = False
    hidden_dropout: Probability = 0.0
    attention_dropout: Probability = 0.0
    tie_word_embeddings: bool = True

    def check(self) -> None:
        """Refuse heads that don't divide the features."""
        check_multiple("hidden_size", self.hidden_size, "n_head", self.n_head)


def alibi_slopes(heads: int) -> Tensor:
    """One slope for each head, made on the GPU."""
    power = 2 ** math.floor(math.log2(heads))
    base = F.full(())
    powers = F.arange(1, 1 + power, dtype=int32)
    slopes = F.power(base, powers)
    if power != heads:
        extra_base = F.full(())
        extra_powers = F.arange(1, 1 + 2 * min(power, heads - power), 2, dtype=int32)
        slopes = F.cat([slopes, F.power(extra_base, extra_powers)], 0)
    return slopes


def _dropout_add(x: Tensor, residual: Tensor, probability: float) -> Tensor:
    out = F.dropout(x, probability)
    out = residual + out
    return out


class GeLUFunction(Function):
    """GELU of which the input alone is saved."""

    def compute(self, x: Tensor) -> Tensor:
        """Return the values."""
        self.save_for_backward(x)
        return x * 0.5 * (1.0 + F.tanh(0.79788456 * x * (1 + 0.044715 * x * x)))

    def backward(self, gradient: Tensor) -> Gradients:
        """Return the gradient of the input."""
        (x,) = self.saved
        tanh_out = F.tanh(0.79788456 * x * (1 + 0.044715 * x * x))
        ff = 0.5 * x * ((1 - tanh_out * tanh_out) * (0.79788456 + 0.1070322243 * x * x)) + 0.5 * (1 + tanh_out)
        return (ff * gradient,)


class BloomGelu(Module):
    """GELU with a backward pass of its own."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the values."""
        return GeLUFunction.apply(x)


class BloomAttention(Module):
    """Attention with a bias for each head and key (ALiBi), and the result added to the layer's input."""

    def __init__(self, config: BloomConfig) -> None:
        super().__init__()
        self.num_heads = config.n_head
        self.head_dim = config.hidden_size // config.n_head
        self.hidden_dropout = config.hidden_dropout
        self.query_key_value = Linear(config.hidden_size, 3 * config.hidden_size, bias=True)
        self.dense = Linear(config.hidden_size, config.hidden_size)
        self.attention_dropout = Dropout(config.attention_dropout)

    def forward(
        self, hidden_states: Tensor, residual: Tensor, alibi: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return the sum, and the weights of the tokens."""
        batch, q_length, _ = hidden_states.shape
        fused_qkv = self.query_key_value(hidden_states)
        query_layer, key_layer, value_layer = self._split(fused_qkv)
        query_layer = query_layer.reshape(batch * self.num_heads, -1, self.head_dim)
        key_layer = key_layer.reshape(batch * self.num_heads, -1, self.head_dim).transpose(-1, -2)
        value_layer = value_layer.reshape(batch * self.num_heads, -1, self.head_dim)
        attention_scores = F.baddbmm(alibi, query_layer, key_layer, beta=1.0, alpha=1.0 / math.sqrt(self.head_dim))
        attn_weights = attention_scores.view(batch, self.num_heads, q_length, -1)
        if mask is not None:
            attn_weights = attn_weights + mask
        attention_probs = F.softmax(attn_weights, dim=-1, dtype=float32).to(query_layer.dtype)
        attention_probs = self.attention_dropout(attention_probs)
        attention_probs_reshaped = attention_probs.view(batch * self.num_heads, q_length, -1)
        context_layer = F.bmm(attention_probs_reshaped, value_layer)
        context_layer = self._merge_heads(context_layer)
        output_tensor = self.dense(context_layer)
        output_tensor = _dropout_add(output_tensor, residual, self.hidden_dropout)
        return output_tensor, attention_probs

    def _split(self, fused_qkv: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        batch, length, _ = fused_qkv.shape
        fused_qkv = fused_qkv.view(batch, length, self.num_heads, 3, self.head_dim)
        query_layer = fused_qkv[..., 0, :].transpose(1, 2)
        key_layer = fused_qkv[..., 1, :].transpose(1, 2)
        value_layer = fused_qkv[..., 2, :].transpose(1, 2)
        return query_layer, key_layer, value_layer

    def _merge_heads(self, x: Tensor) -> Tensor:
        rows, length, _ = x.shape
        x = x.view(rows // self.num_heads, self.num_heads, length, self.head_dim)
        x = x.permute(0, 2, 1, 3)
        return x.reshape(rows // self.num_heads, length, self.num_heads * self.head_dim)


class BloomMLP(Module):
    """Two products with GELU between, and the result added to the layer's input."""

    def __init__(self, config: BloomConfig) -> None:
        super().__init__()
        self.dense_h_to_4h = Linear(config.hidden_size, 4 * config.hidden_size)
        self.gelu_impl = BloomGelu()
        self.dense_4h_to_h = Linear(4 * config.hidden_size, config.hidden_size)
        self.hidden_dropout = config.hidden_dropout

    def forward(self, hidden_states: Tensor, residual: Tensor) -> Tensor:
        """Return the sum."""
        hidden_states = self.gelu_impl(self.dense_h_to_4h(hidden_states))
        intermediate_output = self.dense_4h_to_h(hidden_states)
        output = _dropout_add(intermediate_output, residual, self.hidden_dropout)
        return output


class BloomBlock(Module):
    """Attention and two products, each after a norm."""

    def __init__(self, config: BloomConfig) -> None:
        super().__init__()
        self.residual_after_norm = config.apply_residual_connection_post_layernorm
        self.input_layernorm = LayerNorm(config.hidden_size)
        self.self_attention = BloomAttention(config)
        self.post_attention_layernorm = LayerNorm(config.hidden_size)
        self.mlp = BloomMLP(config)

    def forward(self, hidden_states: Tensor, alibi: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the layer's output, and the weights of the tokens."""
        layernorm_output = self.input_layernorm(hidden_states)
        residual = layernorm_output if self.residual_after_norm else hidden_states
        attention_output, attn_weights = self.self_attention(layernorm_output, residual, alibi, mask)
        layernorm_output = self.post_attention_layernorm(attention_output)
        residual = layernorm_output if self.residual_after_norm else attention_output
        output = self.mlp(layernorm_output, residual)
        return output, attn_weights


class BloomModel(Module):
    """Embedding with a norm, layers, a last norm."""

    def __init__(self, config: BloomConfig, options: ConfigOptions) -> None:
        super().__init__()
        self.options, self.num_heads = options, config.n_head
        self.word_embeddings = Embedding(config.vocab_size, config.hidden_size)
        self.word_embeddings_layernorm = LayerNorm(config.hidden_size)
        self.h = [BloomBlock(config) for _ in range(config.n_layer)]
        self.ln_f = LayerNorm(config.hidden_size)

    def forward(self, input_ids: Tensor) -> Tensor:
        """Return the features of all tokens."""
        inputs_embeds = self.word_embeddings(input_ids)
        batch, length, _ = inputs_embeds.shape
        hidden_states = self.word_embeddings_layernorm(inputs_embeds)
        slopes = alibi_slopes(self.num_heads)
        alibi = slopes[:, None, None] * F.arange(length)
        alibi = alibi.repeat(batch, 1, 1).to(hidden_states.dtype)
        mask = causal_mask(self.options, inputs_embeds)
        for block in self.h:
            outputs = block(hidden_states, alibi, mask)
            hidden_states = outputs[0]
        hidden_states = self.ln_f(hidden_states)
        return hidden_states


class BloomForCausalLM(CausalModel):
    """The model with the embedding as output matrix."""

    ATTENTIONS: ClassVar[tuple[Attention, ...]] = ("eager",)

    def __init__(self, config: BloomConfig, options: ConfigOptions) -> None:
        super().__init__(config, options)
        self.transformer = BloomModel(config, self.options)
        tied = self.transformer.word_embeddings.weight if config.tie_word_embeddings else None
        self.lm_head = Linear(config.hidden_size, config.vocab_size, bias=False, weight=tied)

    def hidden_states(self, input_ids: Tensor, position_ids: Tensor | None) -> Tensor:
        """Return the features of all tokens after the last norm."""
        return self.transformer(input_ids)


ARCHITECTURES = (Architecture("BloomForCausalLM", "bloom", BloomConfig, BloomForCausalLM),)
