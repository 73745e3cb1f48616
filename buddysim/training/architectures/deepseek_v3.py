"""DeepSeek-V3, also as Kimi K2 has it: `modeling_deepseek_v3.py` of transformers.

Queries, keys and values are made from narrow latents (multi-head latent attention); a few features of a head are
rotated, of keys the same ones for all heads.
"""

from __future__ import annotations

from typing import ClassVar

from buddysim.training.architectures.architecture import Architecture
from buddysim.training.architectures.blocks.attention import AttentionCall, Weighted, attend
from buddysim.training.architectures.blocks.gated_mlp import GatedMLP
from buddysim.training.architectures.blocks.group_router import SharedSparseBlock
from buddysim.training.architectures.blocks.layers import Linear
from buddysim.training.architectures.blocks.rms_norm import RMSNorm
from buddysim.training.architectures.blocks.rotary import rotated
from buddysim.training.architectures.decoder import DecoderLayer, DecoderModel, Rotations
from buddysim.training.architectures.model_config import Positions, Size, problem
from buddysim.training.architectures.shared_experts_config import SharedExpertsConfig
from buddysim.training.autograd import functional as F
from buddysim.training.autograd.module import Module
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.options.config_options import ConfigOptions


class DeepseekV3Config(SharedExpertsConfig):
    """Keys of `DeepseekV3Config`; ``head_dim`` is not read, a head has the parts that other keys name."""

    max_position_embeddings: Positions = 4096
    n_group: Size = 8
    topk_group: Size = 4
    first_k_dense_replace: int = 3
    kv_lora_rank: Size
    q_lora_rank: Size | None = None
    qk_rope_head_dim: Size
    qk_nope_head_dim: Size
    v_head_dim: Size
    rope_interleave: bool = True

    @property
    def head_features(self) -> int:
        """Rotated features of a head."""
        return self.qk_rope_head_dim

    @property
    def heads_divide(self) -> bool:
        """The features may be no multiple of the heads."""
        return False

    def check(self) -> None:
        """Refuse fewer heads of keys than of queries: latents give every head its own."""
        super().check()
        if self.key_value_heads != self.num_attention_heads:
            expected = f"{self.num_attention_heads}, the num_attention_heads"
            raise problem("num_key_value_heads", expected, self.key_value_heads)


class LatentAttention(Module):
    """Keys and values of all heads from one latent of a token; queries too, where they have a latent."""

    def __init__(self, config: DeepseekV3Config, options: ConfigOptions) -> None:
        super().__init__()
        self.config, self.options = config, options
        self.query_features = config.qk_nope_head_dim + config.qk_rope_head_dim
        self.call = AttentionCall(scaling=self.query_features**-0.5, dropout=config.attention_dropout)
        features, heads, bias = config.hidden_size, config.num_attention_heads, config.attention_bias
        queries = heads * self.query_features
        self.q_proj = Linear(features, queries, bias=False) if config.q_lora_rank is None else None
        self.q_a_proj: Linear | None = None
        if config.q_lora_rank is not None:
            self.q_a_proj = Linear(features, config.q_lora_rank, bias=bias)
            self.q_a_layernorm = RMSNorm(config.q_lora_rank)
            self.q_b_proj = Linear(config.q_lora_rank, queries, bias=False)
        self.kv_a_proj_with_mqa = Linear(features, config.kv_lora_rank + config.qk_rope_head_dim, bias=bias)
        self.kv_a_layernorm = RMSNorm(config.kv_lora_rank)
        keys_and_values = heads * (config.qk_nope_head_dim + config.v_head_dim)
        self.kv_b_proj = Linear(config.kv_lora_rank, keys_and_values, bias=False)
        self.o_proj = Linear(heads * config.v_head_dim, features, bias=bias)

    def forward(self, hidden_states: Tensor, mask: Tensor | None, position_embeddings: Rotations) -> Weighted:
        """Return the layer's output, of the shape of its input, and the weights of the tokens."""
        config, (batch, length) = self.config, hidden_states.shape[:2]
        q_states = self.queries(hidden_states).view(batch, length, -1, self.query_features).transpose(1, 2)
        q_pass, q_rot = q_states.split([config.qk_nope_head_dim, config.qk_rope_head_dim], -1)
        compressed_kv = self.kv_a_proj_with_mqa(hidden_states)
        kv_nope, k_rot = compressed_kv.split([config.kv_lora_rank, config.qk_rope_head_dim], -1)
        kv_nope = self.kv_a_layernorm(kv_nope)
        kv_nope = kv_nope.view(batch, 1, length, config.kv_lora_rank)
        k_rot = k_rot.view(batch, 1, length, config.qk_rope_head_dim)
        cos, sin = position_embeddings
        q_rot, k_rot = (rotated_pairs if config.rope_interleave else rotated)(q_rot, k_rot, cos, sin)
        query_states = F.cat((q_pass, q_rot), -1)
        key_states, value_states = self.expanded(kv_nope, k_rot)
        attn_output, attn_weights = attend(self.options, self.call, query_states, key_states, value_states, mask)
        attn_output = attn_output.reshape(batch, length, -1).contiguous()
        attn_output = self.o_proj(attn_output)
        return attn_output, attn_weights

    def queries(self, hidden_states: Tensor) -> Tensor:
        """Return the queries of all heads next to each other."""
        if self.q_proj is not None:
            return self.q_proj(hidden_states)
        assert self.q_a_proj is not None
        return self.q_b_proj(self.q_a_layernorm(self.q_a_proj(hidden_states)))

    def expanded(self, kv_nope: Tensor, k_rot: Tensor) -> tuple[Tensor, Tensor]:
        """Return keys and values of all heads."""
        (batch, _, length, _), still = kv_nope.shape, self.config.qk_nope_head_dim
        kv_nope = self.kv_b_proj(kv_nope).view(batch, length, -1, still + self.config.v_head_dim).transpose(1, 2)
        k_nope, value_states = kv_nope.split([still, self.config.v_head_dim], -1)
        k_rot = k_rot.expand(-1, k_nope.shape[1], -1, -1)
        key_states = F.new_empty(kv_nope, (*kv_nope.shape[:-1], self.query_features))
        F.copy_into(key_states, k_nope, -1, (0, still))
        F.copy_into(key_states, k_rot, -1, (still, self.query_features))
        return key_states, value_states


def rotated_pairs(query: Tensor, key: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    """Rotate neighbouring features of queries and keys, of shape (batch, heads, tokens, features)."""
    half = cos.shape[-1] // 2
    cos, sin = cos[..., :half].unsqueeze(1), sin[..., :half].unsqueeze(1)
    q1, q2 = query[..., 0::2], query[..., 1::2]
    k1, k2 = key[..., 0::2], key[..., 1::2]
    q_embed = F.cat([q1 * cos - q2 * sin, q2 * cos + q1 * sin], -1)
    k_embed = F.cat([k1 * cos - k2 * sin, k2 * cos + k1 * sin], -1)
    return q_embed, k_embed


class DeepseekV3ForCausalLM(DecoderModel[DeepseekV3Config]):
    """Latent attention; experts but for the first layers."""

    EXPERTS: ClassVar[bool] = True

    def __init__(self, config: DeepseekV3Config, options: ConfigOptions) -> None:
        super().__init__(config, options, pad_token_id=config.pad_token_id)

    def make_layer(self, config: DeepseekV3Config, index: int) -> DecoderLayer:
        """Make a layer."""
        dense = not config.has_experts(index)
        gated = GatedMLP(config.hidden_size, config.intermediate_size, config.hidden_act) if dense else None
        mlp = gated or SharedSparseBlock(config, self.options)
        return DecoderLayer(config.hidden_size, LatentAttention(config, self.options), mlp)


ARCHITECTURES = (
    Architecture("DeepseekV3ForCausalLM", "deepseek_v3", DeepseekV3Config, DeepseekV3ForCausalLM, ("kimi_k2",)),
)
