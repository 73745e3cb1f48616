"""Llama 4's language model: `modeling_llama4.py` of transformers."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from buddysim.base.errors import BuddysimError
from buddysim.training.architectures.architecture import Architecture
from buddysim.training.architectures.blocks.attention import (
    AttentionCall,
    Weighted,
    attend,
    plain_attention,
    repeat_kv,
)
from buddysim.training.architectures.blocks.complex_rotary import ComplexRotaryEmbedding, rotated_as_complex
from buddysim.training.architectures.blocks.full_experts import FullSparseBlock
from buddysim.training.architectures.blocks.gated_mlp import GatedMLP
from buddysim.training.architectures.blocks.rms_norm import L2Norm, OutputRMSNorm
from buddysim.training.architectures.decoder import DecoderModel, GroupedQueryAttention, Rotations
from buddysim.training.architectures.llama4_config import Llama4TextConfig
from buddysim.training.autograd import functional as F
from buddysim.training.autograd.module import Module
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.options.config_options import ConfigOptions


def half_attention(call: AttentionCall, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Weighted:
    """Attention written out, its softmax in the dtype of the scores."""
    return plain_attention(call, query, repeat_kv(key, call.groups), repeat_kv(value, call.groups), mask)


class Llama4TextAttention(GroupedQueryAttention):
    """Pairs of features are rotated as complex numbers; layers without positions scale queries by them."""

    def __init__(self, config: Llama4TextConfig, options: ConfigOptions, index: int) -> None:
        bias, rotary = config.attention_bias, config.rotary[index]
        super().__init__(config, options, qkv_bias=bias, output_bias=bias, rotary=rotary)
        self.qk_norm = L2Norm() if config.use_qk_norm and rotary else None
        self.scales_queries = config.attn_temperature_tuning and not rotary

    def forward(self, hidden_states: Tensor, mask: Tensor | None, position_embeddings: Rotations) -> Weighted:
        """Return the layer's output, of the shape of its input, and the weights of the tokens."""
        input_shape = hidden_states.shape[:-1]
        query_states = self.q_proj(hidden_states).view(*input_shape, -1, self.head_dim)
        key_states = self.k_proj(hidden_states).view(*input_shape, -1, self.head_dim)
        value_states = self.v_proj(hidden_states).view(*input_shape, -1, self.head_dim).transpose(1, 2)
        if self.rotary:
            query_states, key_states = rotated_as_complex(query_states, key_states, position_embeddings[0])
        if self.qk_norm is not None:
            query_states = self.qk_norm(query_states)
            key_states = self.qk_norm(key_states)
        if self.scales_queries:
            positions = F.arange(input_shape[1]) + 0
            attn_scales = F.log1p(F.floor((positions.float() + 1.0) / 8192.0)) * 0.1 + 1.0
            attn_scales = attn_scales.view(1, input_shape[1], 1, 1).expand(*input_shape, 1, 1)
            query_states = (query_states * attn_scales).to(query_states.dtype)
        query_states, key_states = query_states.transpose(1, 2), key_states.transpose(1, 2)
        attn_output, attn_weights = attend(
            self.options, self.call, query_states, key_states, value_states, mask, half_attention
        )
        attn_output = attn_output.reshape(*input_shape, -1).contiguous()
        attn_output = self.o_proj(attn_output)
        return attn_output, attn_weights


class Llama4TextDecoderLayer(Module):
    """Attention and a gated layer (or experts), each after a norm and added to its input."""

    def __init__(self, config: Llama4TextConfig, options: ConfigOptions, index: int) -> None:
        super().__init__()
        self.self_attn = Llama4TextAttention(config, options, index)
        self.has_experts = config.has_experts(index)
        dense = None if self.has_experts else config.intermediate_size_mlp
        gated = GatedMLP(config.hidden_size, dense, config.hidden_act) if dense is not None else None
        self.feed_forward: Module = gated or FullSparseBlock(config, config.hidden_act)
        self.input_layernorm = OutputRMSNorm(config.hidden_size)
        self.post_attention_layernorm = OutputRMSNorm(config.hidden_size)

    def forward(
        self, hidden_states: Tensor, mask: Tensor | None, position_embeddings: Rotations, position_ids: Tensor
    ) -> Tensor:
        """Return the layer's output; the positions are held by a layer that is recomputed, and not read."""
        residual = hidden_states
        hidden_states = self.input_layernorm(hidden_states)
        attention_states, _ = self.self_attn(hidden_states, mask, position_embeddings)
        hidden_states = residual + attention_states
        residual = hidden_states
        hidden_states = self.post_attention_layernorm(hidden_states)
        if self.has_experts:
            hidden_states, _ = self.feed_forward(hidden_states)
        else:
            hidden_states = self.feed_forward(hidden_states)
        hidden_states = residual + hidden_states.view(*residual.shape)
        return hidden_states


class Llama4ForCausalLM(DecoderModel[Llama4TextConfig]):
    """Chunks are a mask, which FlashAttention doesn't take, from the length of one chunk on."""

    CHUNKED: ClassVar[bool] = True
    PADDED: ClassVar[bool] = False

    def __init__(self, config: Llama4TextConfig, options: ConfigOptions) -> None:
        chunks = [window for window in config.windows if window is not None]
        if any(window <= self.sequence_of(config, options.sequence) for window in chunks):
            if options.attention == "flash":
                raise BuddysimError(f"attention flash: expected efficient or eager: chunks of {chunks[0]} are a mask")
            options = replace(options, attention=options.attention or "efficient")
        masks = list(dict.fromkeys(config.windows))
        super().__init__(config, options, windows=config.windows, masks=masks, pad_token_id=config.pad_token_id)

    def make_layer(self, config: Llama4TextConfig, index: int) -> Llama4TextDecoderLayer:
        """Make a layer."""
        return Llama4TextDecoderLayer(config, self.options, index)

    def make_norm(self, features: int) -> OutputRMSNorm:
        """Make the last norm."""
        return OutputRMSNorm(features)

    def make_rotary(self, config: Llama4TextConfig) -> ComplexRotaryEmbedding:
        """Make what gives the rotations of positions."""
        return ComplexRotaryEmbedding(config)


ARCHITECTURES = (Architecture("Llama4ForCausalLM", "llama4_text", Llama4TextConfig, Llama4ForCausalLM),)
