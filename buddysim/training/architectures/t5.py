"""T5 and Flan-T5: `modeling_t5.py` of transformers, encoder and decoder, with as many tokens each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from buddysim.training.architectures.architecture import Architecture
from buddysim.training.architectures.blocks.activations import FUNCTIONS, Activation
from buddysim.training.architectures.blocks.attention import AttentionCall, Weighted, attend
from buddysim.training.architectures.blocks.layers import Dropout, Embedding, Linear
from buddysim.training.architectures.blocks.loss import Head, parted_loss, whole_loss
from buddysim.training.architectures.blocks.masks import causal_mask
from buddysim.training.architectures.blocks.rms_norm import T5LayerNorm
from buddysim.training.architectures.language_model import TracedModel
from buddysim.training.architectures.model_config import (
    Depth,
    ModelConfig,
    Positive,
    Probability,
    Size,
    Vocabulary,
    problem,
)
from buddysim.training.autograd import functional as F
from buddysim.training.autograd.dtypes import bool8, int64
from buddysim.training.autograd.module import Module
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.options.config_options import Attention, ConfigOptions


class T5Config(ModelConfig):
    """Keys of `T5Config`. The output matrix is always tied; ``tie_word_embeddings`` false is the sign of T5 1.1."""

    ALIASES: ClassVar[Mapping[str, str]] = {
        "hidden_size": "d_model",
        "num_attention_heads": "num_heads",
        "num_hidden_layers": "num_layers",
        "head_dim": "d_kv",
    }

    vocab_size: Vocabulary
    d_model: Size
    d_ff: Size
    num_layers: Depth
    num_heads: Size
    d_kv: Size = 64
    num_decoder_layers: Depth | None = None
    relative_attention_num_buckets: Annotated[int, Field(ge=2, le=1 << 16)] = 32
    relative_attention_max_distance: Annotated[int, Field(ge=2, le=1 << 24)] = 128
    dropout_rate: Probability = 0.1
    layer_norm_epsilon: Positive = 1e-6
    feed_forward_proj: str = "relu"
    tie_word_embeddings: bool = True

    @model_validator(mode="before")
    @classmethod
    def _no_null(cls, content: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in content.items() if name != "tie_word_embeddings" or value is not None}

    @property
    def is_gated(self) -> bool:
        """Whether the products between are gated."""
        return self.feed_forward_proj.startswith("gated-")

    @property
    def activation(self) -> str:
        """Name of the activation function."""
        return "gelu_new" if self.feed_forward_proj == "gated-gelu" else self.feed_forward_proj.removeprefix("gated-")

    def check(self) -> None:
        """Refuse an activation function that isn't known."""
        if self.activation not in FUNCTIONS:
            names = ", ".join(FUNCTIONS)
            raise problem("feed_forward_proj", f"one of {names}, or gated- and one of them", self.feed_forward_proj)


class T5DenseActDense(Module):
    """Two products with an activation between."""

    def __init__(self, config: T5Config) -> None:
        super().__init__()
        self.wi = Linear(config.d_model, config.d_ff, bias=False)
        self.wo = Linear(config.d_ff, config.d_model, bias=False)
        self.dropout = Dropout(config.dropout_rate)
        self.act = Activation(config.activation)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Return the layer's output."""
        hidden_states = self.wi(hidden_states)
        hidden_states = self.act(hidden_states)
        hidden_states = self.dropout(hidden_states)
        if hidden_states.dtype is not self.wo.weight.dtype:
            hidden_states = hidden_states.to(self.wo.weight.dtype)
        hidden_states = self.wo(hidden_states)
        return hidden_states


class T5DenseGatedActDense(Module):
    """Two products, the activation of one times the other, a third product."""

    def __init__(self, config: T5Config) -> None:
        super().__init__()
        self.wi_0 = Linear(config.d_model, config.d_ff, bias=False)
        self.wi_1 = Linear(config.d_model, config.d_ff, bias=False)
        self.wo = Linear(config.d_ff, config.d_model, bias=False)
        self.dropout = Dropout(config.dropout_rate)
        self.act = Activation(config.activation)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Return the layer's output."""
        hidden_gelu = self.act(self.wi_0(hidden_states))
        hidden_linear = self.wi_1(hidden_states)
        hidden_states = hidden_gelu * hidden_linear
        hidden_states = self.dropout(hidden_states)
        if hidden_states.dtype is not self.wo.weight.dtype:
            hidden_states = hidden_states.to(self.wo.weight.dtype)
        hidden_states = self.wo(hidden_states)
        return hidden_states


class T5LayerFF(Module):
    """The products, after a norm and added to their input."""

    def __init__(self, config: T5Config) -> None:
        super().__init__()
        self.DenseReluDense = T5DenseGatedActDense(config) if config.is_gated else T5DenseActDense(config)
        self.layer_norm = T5LayerNorm(config.d_model)
        self.dropout = Dropout(config.dropout_rate)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Return the layer's output."""
        forwarded_states = self.layer_norm(hidden_states)
        forwarded_states = self.DenseReluDense(forwarded_states)
        hidden_states = hidden_states + self.dropout(forwarded_states)
        return hidden_states


class T5Attention(Module):
    """Attention to the same tokens or to the encoder's, with a bias that is learned for each distance and head.

    Parameters
    ----------
    has_bias : computes the biases, which later layers take over; else they are zeros (of the encoder's tokens)
    """

    def __init__(
        self, config: T5Config, options: ConfigOptions, *, has_bias: bool, is_decoder: bool, causal: bool
    ) -> None:
        super().__init__()
        self.options, self.is_decoder = options, is_decoder
        self.n_heads, self.key_features = config.num_heads, config.d_kv
        self.buckets, self.max_distance = config.relative_attention_num_buckets, config.relative_attention_max_distance
        self.call = AttentionCall(scaling=1.0, dropout=config.dropout_rate, causal=causal)
        inner = config.num_heads * config.d_kv
        self.q = Linear(config.d_model, inner, bias=False)
        self.k = Linear(config.d_model, inner, bias=False)
        self.v = Linear(config.d_model, inner, bias=False)
        self.o = Linear(inner, config.d_model, bias=False)
        self.relative_attention_bias = Embedding(self.buckets, config.num_heads) if has_bias else None

    def forward(
        self,
        hidden_states: Tensor,
        mask: Tensor | None,
        key_value_states: Tensor | None,
        position_bias: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return the layer's output, the biases, and the weights of the tokens."""
        input_shape = hidden_states.shape[:-1]
        query_states = self.q(hidden_states).view(*input_shape, -1, self.key_features).transpose(1, 2)
        current_states = hidden_states if key_value_states is None else key_value_states
        kv_shape = (*current_states.shape[:-1], -1, self.key_features)
        key_states = self.k(current_states).view(*kv_shape).transpose(1, 2)
        value_states = self.v(current_states).view(*kv_shape).transpose(1, 2)
        if position_bias is None:
            key_length = key_states.shape[-2]
            if self.relative_attention_bias is None:
                shape = (1, self.n_heads, input_shape[1], key_length)
                position_bias = F.zeros(shape, query_states.dtype)
            else:
                position_bias = self._bias(input_shape[1], key_length, self.relative_attention_bias)
        attn_output, attn_weights = self._attend(query_states, key_states, value_states, mask, position_bias)
        attn_output = attn_output.reshape(*input_shape, -1).contiguous()
        attn_output = self.o(attn_output)
        return attn_output, position_bias, attn_weights

    def _attend(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, bias: Tensor) -> Weighted:
        if self.options.attention == "eager":
            return _eager(self.call, query, key, value, mask, bias)
        return attend(self.options, self.call, query, key, value, _bias_mask(bias, mask, self.call.causal, query, key))

    def _bias(self, query_length: int, key_length: int, table: Embedding) -> Tensor:
        context_position = F.arange(query_length)[:, None] + 0
        memory_position = F.arange(key_length)[None, :]
        relative_position = memory_position - context_position
        relative_position_bucket = self._bucket(relative_position)
        values = table(relative_position_bucket)
        values = values.permute(2, 0, 1).unsqueeze(0)
        return values

    def _bucket(self, relative_position: Tensor) -> Tensor:
        """The row of the table for each distance: one for each short distance, then by the logarithm."""
        buckets = self.buckets
        relative_buckets: Tensor | None = None
        if not self.is_decoder:
            buckets //= 2
            relative_buckets = (relative_position > 0).to(int64) * buckets
            relative_buckets = 0 + relative_buckets
            relative_position = F.abs_(relative_position)
        else:
            relative_position = -F.minimum(relative_position, F.zeros_like(relative_position))
        max_exact = buckets // 2
        is_small = relative_position < max_exact
        relative_position_if_large = max_exact + (
            F.log(relative_position.float() / max_exact)
            / math.log(self.max_distance / max_exact)
            * (buckets - max_exact)
        ).to(int64)
        relative_position_if_large = F.minimum(relative_position_if_large, F.full_like(relative_position_if_large))
        buckets_of = F.where(is_small, relative_position, relative_position_if_large)
        return 0 + buckets_of if relative_buckets is None else relative_buckets.add_(buckets_of)


def _eager(
    call: AttentionCall, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, position_bias: Tensor
) -> Weighted:
    attn_weights = F.matmul(query, key.transpose(2, 3)) * call.scaling
    attn_weights = attn_weights + position_bias
    if mask is not None:
        attn_weights = attn_weights + mask
    attn_weights = F.softmax(attn_weights, -1)
    attn_weights = F.dropout(attn_weights, call.dropout)
    attn_output = F.matmul(attn_weights, value)
    attn_output = attn_output.transpose(1, 2).contiguous()
    return attn_output, attn_weights


def _bias_mask(bias: Tensor, mask: Tensor | None, causal: bool, query: Tensor, key: Tensor) -> Tensor:
    """The biases as a mask of PyTorch's operator, with later tokens left out."""
    if mask is None and causal:
        q_length, kv_length = query.shape[2], key.shape[2]
        allowed = F.arange(q_length)[:, None] >= F.arange(kv_length)[None, :]
        allowed = allowed.view(1, 1, q_length, kv_length)
        combined = F.where(allowed, bias, -1e30)
    elif mask is None:
        combined = bias
    elif mask.dtype is bool8:
        combined = F.where(mask, bias, -1e30)
    else:
        combined = bias + mask
    return combined.contiguous()


class T5LayerSelfAttention(Module):
    """Attention to the same tokens, after a norm and added to its input."""

    def __init__(self, config: T5Config, options: ConfigOptions, *, has_bias: bool, is_decoder: bool) -> None:
        super().__init__()
        self.SelfAttention = T5Attention(config, options, has_bias=has_bias, is_decoder=is_decoder, causal=is_decoder)
        self.layer_norm = T5LayerNorm(config.d_model)
        self.dropout = Dropout(config.dropout_rate)

    def forward(
        self, hidden_states: Tensor, mask: Tensor | None, position_bias: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return the layer's output, the biases, and the weights of the tokens."""
        normed_hidden_states = self.layer_norm(hidden_states)
        attention_output, position_bias, attn_weights = self.SelfAttention(
            normed_hidden_states, mask, None, position_bias
        )
        attention_output = hidden_states + self.dropout(attention_output)
        return attention_output, position_bias, attn_weights


class T5LayerCrossAttention(Module):
    """Attention to the encoder's tokens, after a norm and added to its input."""

    def __init__(self, config: T5Config, options: ConfigOptions) -> None:
        super().__init__()
        self.EncDecAttention = T5Attention(config, options, has_bias=False, is_decoder=True, causal=False)
        self.layer_norm = T5LayerNorm(config.d_model)
        self.dropout = Dropout(config.dropout_rate)

    def forward(
        self, hidden_states: Tensor, key_value_states: Tensor, mask: Tensor | None, position_bias: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return the layer's output, the biases, and the weights of the tokens."""
        normed_hidden_states = self.layer_norm(hidden_states)
        attention_output, position_bias, attn_weights = self.EncDecAttention(
            normed_hidden_states, mask, key_value_states, position_bias
        )
        layer_output = hidden_states + self.dropout(attention_output)
        return layer_output, position_bias, attn_weights


class T5Block(Module):
    """Attention, in the decoder a second one, and the products."""

    def __init__(self, config: T5Config, options: ConfigOptions, *, has_bias: bool, is_decoder: bool) -> None:
        super().__init__()
        self.is_decoder = is_decoder
        self.layer: list[Module] = [T5LayerSelfAttention(config, options, has_bias=has_bias, is_decoder=is_decoder)]
        if is_decoder:
            self.layer.append(T5LayerCrossAttention(config, options))
        self.layer.append(T5LayerFF(config))

    def forward(
        self,
        hidden_states: Tensor,
        mask: Tensor | None,
        position_bias: Tensor | None,
        encoder_hidden_states: Tensor | None,
        cross_position_bias: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return the layer's output, and the biases of both attentions."""
        hidden_states, self_attn_position_bias, _ = self.layer[0](hidden_states, mask, position_bias)
        cross_attn_position_bias = None
        if encoder_hidden_states is not None:
            hidden_states, cross_attn_position_bias, _ = self.layer[1](
                hidden_states, encoder_hidden_states, None, cross_position_bias
            )
        hidden_states = self.layer[-1](hidden_states)
        return hidden_states, self_attn_position_bias, cross_attn_position_bias


class T5Stack(Module):
    """The encoder or the decoder; both have the embedding of the whole model."""

    def __init__(
        self, config: T5Config, options: ConfigOptions, embedding: Embedding, *, depth: int, is_decoder: bool
    ) -> None:
        super().__init__()
        self.options, self.is_decoder = options, is_decoder
        self.embed_tokens = Embedding(config.vocab_size, config.d_model, weight=embedding.weight)
        self.block = [T5Block(config, options, has_bias=index == 0, is_decoder=is_decoder) for index in range(depth)]
        self.final_layer_norm = T5LayerNorm(config.d_model)
        self.dropout = Dropout(config.dropout_rate)

    def forward(self, input_ids: Tensor, encoder_hidden_states: Tensor | None = None) -> Tensor:
        """Return the features of all tokens."""
        inputs_embeds = self.embed_tokens(input_ids)
        mask = causal_mask(self.options, inputs_embeds) if self.is_decoder else None
        position_bias = None
        cross_position_bias = None
        hidden_states = self.dropout(inputs_embeds)
        for layer in self.block:
            hidden_states, self_bias, cross_bias = layer(
                hidden_states, mask, position_bias, encoder_hidden_states, cross_position_bias
            )
            position_bias = self_bias
            if encoder_hidden_states is not None:
                cross_position_bias = cross_bias
        hidden_states = self.final_layer_norm(hidden_states)
        hidden_states = self.dropout(hidden_states)
        return hidden_states


class T5ForConditionalGeneration(TracedModel):
    """Encoder, decoder, and the embedding as output matrix."""

    ATTENTIONS: ClassVar[tuple[Attention, ...]] = ("eager", "efficient")

    def __init__(self, config: T5Config, options: ConfigOptions) -> None:
        super().__init__(config, options)
        self.shared = Embedding(config.vocab_size, config.d_model)
        self.encoder = T5Stack(config, self.options, self.shared, depth=config.num_layers, is_decoder=False)
        self.decoder = T5Stack(
            config, self.options, self.shared, depth=config.num_decoder_layers or config.num_layers, is_decoder=True
        )
        self.lm_head = Linear(config.d_model, config.vocab_size, bias=False, weight=self.shared.weight)
        self.scale = config.d_model**-0.5 if config.tie_word_embeddings else None

    def forward(self, input_ids: Tensor, labels: Tensor) -> Tensor:
        """Return the loss."""
        hidden_states = self.encoder(input_ids)
        decoder_input_ids = _shifted_right(labels)
        decoder_outputs = (self.decoder(decoder_input_ids, hidden_states),)
        sequence_output = decoder_outputs[0]
        if self.scale is not None:
            sequence_output = sequence_output * self.scale
        if self.options.loss != "whole":
            head = Head(self.lm_head, self.lm_head.weight)
            return parted_loss(self.options, head, sequence_output, labels, shift=False)
        lm_logits = self.lm_head(sequence_output)
        return whole_loss(lm_logits, labels, shift=False, upcast=False)


def _shifted_right(input_ids: Tensor) -> Tensor:
    shifted_input_ids = F.new_zeros(input_ids, input_ids.shape)
    F.copy_(shifted_input_ids[..., 1:], input_ids[..., :-1].clone())
    F.fill_(shifted_input_ids[..., 0])
    F.masked_fill_(shifted_input_ids, F.eq(shifted_input_ids, -100))
    return shifted_input_ids


ARCHITECTURES = (Architecture("T5ForConditionalGeneration", "t5", T5Config, T5ForConditionalGeneration),)
