"""OLMo 2: `modeling_olmo2.py` of transformers."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from buddysim.training.architectures.architecture import Architecture
from buddysim.training.architectures.blocks.gated_mlp import GatedMLP
from buddysim.training.architectures.blocks.rms_norm import LateCastRMSNorm
from buddysim.training.architectures.blocks.rotary import RotaryEmbedding, rotated
from buddysim.training.architectures.decoder import DecoderModel, GroupedQueryAttention, Rotations
from buddysim.training.architectures.model_config import ActivationName, Size, check_padding
from buddysim.training.architectures.rotary_config import GroupedConfig
from buddysim.training.autograd.module import Module
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.options.config_options import ConfigOptions


class Olmo2Config(GroupedConfig):
    """Keys of `Olmo2Config`."""

    hidden_act: ActivationName = "silu"
    num_key_value_heads: Size | None = None
    rms_norm_eps: Annotated[float, Field(gt=0, lt=1)] = 1e-5
    attention_bias: bool = False
    pad_token_id: int | None = 1

    def check(self) -> None:
        """Refuse what transformers refuses."""
        super().check()
        check_padding(self.pad_token_id, self.vocab_size)


class Olmo2RotaryEmbedding(RotaryEmbedding):
    """Cosines and sines stay fp32."""

    def cast(self, values: Tensor, features: Tensor) -> Tensor:
        """Return the values themselves."""
        return values


class Olmo2Attention(GroupedQueryAttention):
    """Queries and keys are normalized over all heads together, and rotated in fp32."""

    def __init__(self, config: Olmo2Config, options: ConfigOptions) -> None:
        bias = config.attention_bias
        super().__init__(config, options, qkv_bias=bias, output_bias=bias)
        self.q_norm: Module = LateCastRMSNorm(config.num_attention_heads * self.head_dim)
        self.k_norm: Module = LateCastRMSNorm(config.key_value_heads * self.head_dim)

    def projected(self, hidden_states: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values: all are projected before any is seen as heads."""
        query_states = self.q_norm(self.q_proj(hidden_states))
        key_states = self.k_norm(self.k_proj(hidden_states))
        value_states = self.v_proj(hidden_states)
        return self.heads(query_states), self.heads(key_states), self.heads(value_states)

    def rotated(self, query: Tensor, key: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        """Return queries and keys by their positions, in their dtype."""
        q_type, k_type = query.dtype, key.dtype
        q_embed, k_embed = rotated(query, key, cos, sin)
        return q_embed.to(q_type), k_embed.to(k_type)


class Olmo2DecoderLayer(Module):
    """Norms of what attention and the gated layer return, none of what they read."""

    def __init__(self, config: Olmo2Config, options: ConfigOptions) -> None:
        super().__init__()
        self.self_attn = Olmo2Attention(config, options)
        self.mlp = GatedMLP(config.hidden_size, config.intermediate_size, config.hidden_act)
        self.post_attention_layernorm = LateCastRMSNorm(config.hidden_size)
        self.post_feedforward_layernorm = LateCastRMSNorm(config.hidden_size)

    def forward(
        self, hidden_states: Tensor, mask: Tensor | None, position_embeddings: Rotations, position_ids: Tensor
    ) -> Tensor:
        """Return the layer's output; the positions are held by a layer that is recomputed, and not read."""
        residual = hidden_states
        hidden_states, _ = self.self_attn(hidden_states, mask, position_embeddings)
        hidden_states = self.post_attention_layernorm(hidden_states)
        hidden_states = residual + hidden_states
        residual = hidden_states
        hidden_states = self.mlp(hidden_states)
        hidden_states = self.post_feedforward_layernorm(hidden_states)
        hidden_states = residual + hidden_states
        return hidden_states


class Olmo2ForCausalLM(DecoderModel[Olmo2Config]):
    """A decoder with norms behind its parts."""

    def __init__(self, config: Olmo2Config, options: ConfigOptions) -> None:
        super().__init__(config, options, pad_token_id=config.pad_token_id)

    def make_layer(self, config: Olmo2Config, index: int) -> Olmo2DecoderLayer:
        """Make a layer."""
        return Olmo2DecoderLayer(config, self.options)

    def make_norm(self, features: int) -> LateCastRMSNorm:
        """Make the last norm."""
        return LateCastRMSNorm(features)

    def make_rotary(self, config: Olmo2Config) -> Olmo2RotaryEmbedding:
        """Make what gives the cosines and sines of positions."""
        return Olmo2RotaryEmbedding(config)


ARCHITECTURES = (Architecture("Olmo2ForCausalLM", "olmo2", Olmo2Config, Olmo2ForCausalLM),)
