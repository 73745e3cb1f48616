"""Gemma 2: `modeling_gemma2.py` of transformers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from buddysim.training.architectures.architecture import Architecture
from buddysim.training.architectures.blocks.attention import AttentionCall
from buddysim.training.architectures.blocks.gated_mlp import GatedMLP
from buddysim.training.architectures.blocks.layers import Embedding
from buddysim.training.architectures.blocks.rms_norm import GemmaRMSNorm
from buddysim.training.architectures.decoder import DecoderModel, GroupedQueryAttention, Rotations
from buddysim.training.architectures.model_config import (
    ActivationName,
    Positions,
    Positive,
    Size,
)
from buddysim.training.architectures.windows import AlternatingConfig, Window
from buddysim.training.autograd import functional as F
from buddysim.training.autograd.module import Module
from buddysim.training.autograd.tape import active_tape
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.options.config_options import Attention, ConfigOptions


class Gemma2Config(AlternatingConfig):
    """Keys of `Gemma2Config`; windows alternate with full attention unless ``layer_types`` says otherwise."""

    DIVIDED: ClassVar[bool] = True
    REFUSED = {"use_bidirectional_attention": (None, False)}  # noqa: RUF012

    max_position_embeddings: Positions = 8192
    num_key_value_heads: Size | None = 4
    head_dim: Size | None = 256
    tie_word_embeddings: bool = True
    hidden_activation: ActivationName = "gelu_pytorch_tanh"
    attention_bias: bool = False
    query_pre_attn_scalar: Positive = 256
    sliding_window: Window | None = 4096
    final_logit_softcapping: Positive | None = 30.0
    attn_logit_softcapping: Positive | None = 50.0
    pad_token_id: int | None = 0


class ScaledEmbedding(Embedding):
    """An embedding multiplied by a buffer that holds the square root of the features."""

    def __init__(self, words: int, features: int, padding_idx: int | None) -> None:
        super().__init__(words, features, padding_idx=padding_idx)
        tape = active_tape()
        self.embed_scale = tape.buffer((), tape.default_dtype, "embed_scale")

    def forward(self, input_ids: Tensor) -> Tensor:
        """Return the features of tokens."""
        return super().forward(input_ids) * self.embed_scale.to(self.weight.dtype)


class Gemma2DecoderLayer(Module):
    """Four norms: before and after attention, before and after the gated layer."""

    def __init__(self, config: Gemma2Config, attention: Module) -> None:
        super().__init__()
        self.self_attn = attention
        self.mlp = GatedMLP(config.hidden_size, config.intermediate_size, config.hidden_activation)
        self.input_layernorm = GemmaRMSNorm(config.hidden_size)
        self.post_attention_layernorm = GemmaRMSNorm(config.hidden_size)
        self.pre_feedforward_layernorm = GemmaRMSNorm(config.hidden_size)
        self.post_feedforward_layernorm = GemmaRMSNorm(config.hidden_size)

    def forward(
        self, hidden_states: Tensor, mask: Tensor | None, position_embeddings: Rotations, position_ids: Tensor
    ) -> Tensor:
        """Return the layer's output; the positions are held by a layer that is recomputed, and not read."""
        residual = hidden_states
        hidden_states = self.input_layernorm(hidden_states)
        hidden_states, _ = self.self_attn(hidden_states, mask, position_embeddings)
        hidden_states = self.post_attention_layernorm(hidden_states)
        hidden_states = residual + hidden_states
        residual = hidden_states
        hidden_states = self.pre_feedforward_layernorm(hidden_states)
        hidden_states = self.mlp(hidden_states)
        hidden_states = self.post_feedforward_layernorm(hidden_states)
        hidden_states = residual + hidden_states
        return hidden_states


class Gemma2ForCausalLM(DecoderModel[Gemma2Config]):
    """Soft caps of scores and logits; PyTorch's fused operator has none, FlashAttention's has one."""

    ATTENTIONS: ClassVar[tuple[Attention, ...]] = ("flash", "eager")

    def __init__(self, config: Gemma2Config, options: ConfigOptions) -> None:
        self.softcap = config.final_logit_softcapping
        masks: Sequence[int | None] = [None, config.sliding_window]
        super().__init__(config, options, windows=config.windows, masks=masks, pad_token_id=config.pad_token_id)

    def make_layer(self, config: Gemma2Config, index: int) -> Gemma2DecoderLayer:
        """Make a layer."""
        bias = config.attention_bias
        attention = GroupedQueryAttention(config, self.options, qkv_bias=bias, output_bias=bias)
        attention.call = AttentionCall(
            scaling=config.query_pre_attn_scalar**-0.5,
            groups=config.num_attention_heads // config.key_value_heads,
            dropout=config.attention_dropout,
            softcap=config.attn_logit_softcapping,
        )
        return Gemma2DecoderLayer(config, attention)

    def make_norm(self, features: int) -> GemmaRMSNorm:
        """Make the last norm."""
        return GemmaRMSNorm(features)

    def make_embedding(self, config: Gemma2Config, pad_token_id: int | None) -> ScaledEmbedding:
        """Make the embedding."""
        return ScaledEmbedding(config.vocab_size, config.hidden_size, pad_token_id)

    def logits(self, hidden_states: Tensor) -> Tensor:
        """Return the scores of all words, limited by a tanh."""
        logits = super().logits(hidden_states)
        if self.softcap is not None:
            logits = logits / self.softcap
            logits = F.tanh(logits)
            logits = logits * self.softcap
        return logits


ARCHITECTURES = (Architecture("Gemma2ForCausalLM", "gemma2", Gemma2Config, Gemma2ForCausalLM),)
