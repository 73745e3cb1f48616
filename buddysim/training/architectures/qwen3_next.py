"""Qwen3-Next: `modeling_qwen3_next.py` of transformers."""

from __future__ import annotations

from typing import ClassVar

from buddysim.base.errors import BuddysimError
from buddysim.training.architectures.architecture import Architecture
from buddysim.training.architectures.blocks.attention import Weighted
from buddysim.training.architectures.blocks.experts import Experts, Router, SparseBlock
from buddysim.training.architectures.blocks.gated_delta_net import GatedDeltaNet
from buddysim.training.architectures.blocks.gated_mlp import GatedMLP
from buddysim.training.architectures.blocks.layers import Linear
from buddysim.training.architectures.blocks.rms_norm import GemmaRMSNorm
from buddysim.training.architectures.blocks.rotary import rotated_partly
from buddysim.training.architectures.decoder import DecoderModel, GroupedQueryAttention, Rotations
from buddysim.training.architectures.qwen3_next_config import Qwen3NextConfig
from buddysim.training.autograd import functional as F
from buddysim.training.autograd.module import Module
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.options.config_options import ConfigOptions


class Qwen3NextAttention(GroupedQueryAttention):
    """Each query head has a gate, from the same product, that multiplies its result."""

    def __init__(self, config: Qwen3NextConfig, options: ConfigOptions) -> None:
        bias = config.attention_bias
        super().__init__(config, options, qkv_bias=bias, output_bias=bias)
        self.q_proj = Linear(config.hidden_size, 2 * config.num_attention_heads * self.head_dim, bias=bias)
        self.q_norm: Module = GemmaRMSNorm(self.head_dim)
        self.k_norm: Module = GemmaRMSNorm(self.head_dim)

    def forward(self, hidden_states: Tensor, mask: Tensor | None, position_embeddings: Rotations) -> Weighted:
        """Return the layer's output, of the shape of its input, and the weights of the tokens."""
        input_shape = hidden_states.shape[:-1]
        query_states, gate = self.q_proj(hidden_states).view(*input_shape, -1, 2 * self.head_dim).chunk(2, -1)
        gate = gate.reshape(*input_shape, -1)
        query_states = self.q_norm(query_states.view(*input_shape, -1, self.head_dim)).transpose(1, 2)
        key_states = self.heads(self.k_proj(hidden_states), self.k_norm)
        value_states = self.heads(self.v_proj(hidden_states))
        query_states, key_states = rotated_partly(query_states, key_states, *position_embeddings)
        attn_output, attn_weights = self.attended(query_states, key_states, value_states, mask)
        attn_output = attn_output.reshape(*input_shape, -1).contiguous()
        attn_output = attn_output * F.sigmoid(gate)
        attn_output = self.o_proj(attn_output)
        return attn_output, attn_weights


class SharedExpertBlock(SparseBlock):
    """Experts, and a gated layer that every token takes by a gate of its own."""

    def __init__(self, config: Qwen3NextConfig, options: ConfigOptions) -> None:
        features, experts, per_token = config.hidden_size, config.num_local_experts, config.num_experts_per_tok
        router = Router(features, experts, per_token, cast="after", normalized=config.norm_topk_prob)
        super().__init__(router, Experts(features, config.moe_intermediate_size, experts, config.hidden_act, options))
        self.shared_expert = GatedMLP(features, config.shared_expert_intermediate_size, config.hidden_act)
        self.shared_expert_gate = Linear(features, 1, bias=False)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Return the layer's output."""
        batch_size, sequence_length, hidden_dim = hidden_states.shape
        hidden_states_reshaped = hidden_states.view(-1, hidden_dim)
        shared_expert_output = self.shared_expert(hidden_states_reshaped)
        _, routing_weights, selected_experts = self.gate(hidden_states_reshaped)
        expert_output = self.experts(hidden_states_reshaped, selected_experts, routing_weights)
        shared_expert_output = F.sigmoid(self.shared_expert_gate(hidden_states_reshaped)) * shared_expert_output
        expert_output = expert_output + shared_expert_output
        expert_output = expert_output.reshape(batch_size, sequence_length, hidden_dim)
        return expert_output


class Qwen3NextDecoderLayer(Module):
    """Attention or a recurrence, then experts or a gated layer, each after a norm and added to its input."""

    def __init__(self, config: Qwen3NextConfig, options: ConfigOptions, index: int) -> None:
        super().__init__()
        is_linear, sparse = config.is_linear(index), config.has_experts(index)
        self.linear_attn = GatedDeltaNet(config) if is_linear else None
        self.self_attn = None if is_linear else Qwen3NextAttention(config, options)
        dense = None if sparse else GatedMLP(config.hidden_size, config.intermediate_size, config.hidden_act)
        self.mlp: Module = dense or SharedExpertBlock(config, options)
        self.input_layernorm = GemmaRMSNorm(config.hidden_size)
        self.post_attention_layernorm = GemmaRMSNorm(config.hidden_size)

    def forward(
        self, hidden_states: Tensor, mask: Tensor | None, position_embeddings: Rotations, position_ids: Tensor
    ) -> Tensor:
        """Return the layer's output; the positions are held by a layer that is recomputed, and not read."""
        residual = hidden_states
        hidden_states = self.input_layernorm(hidden_states)
        if self.linear_attn is not None:
            hidden_states = self.linear_attn(hidden_states)
        else:
            assert self.self_attn is not None
            hidden_states, _ = self.self_attn(hidden_states, mask, position_embeddings)
        hidden_states = residual + hidden_states
        residual = hidden_states
        hidden_states = self.post_attention_layernorm(hidden_states)
        hidden_states = self.mlp(hidden_states)
        hidden_states = residual + hidden_states
        return hidden_states


class Qwen3NextForCausalLM(DecoderModel[Qwen3NextConfig]):
    """Layers of both kinds."""

    EXPERTS: ClassVar[bool] = True
    PADDED: ClassVar[bool] = False

    def __init__(self, config: Qwen3NextConfig, options: ConfigOptions) -> None:
        windows = [0 if config.is_linear(index) else None for index in range(config.num_hidden_layers)]
        super().__init__(config, options, windows=windows, pad_token_id=config.pad_token_id)
        if options.packed > 1:
            raise BuddysimError(f"packed {options.packed}: expected 1: a recurrence doesn't end with a document")

    def make_layer(self, config: Qwen3NextConfig, index: int) -> Qwen3NextDecoderLayer:
        """Make a layer."""
        return Qwen3NextDecoderLayer(config, self.options, index)

    def make_norm(self, features: int) -> GemmaRMSNorm:
        """Make the last norm."""
        return GemmaRMSNorm(features)


ARCHITECTURES = (Architecture("Qwen3NextForCausalLM", "qwen3_next", Qwen3NextConfig, Qwen3NextForCausalLM),)
