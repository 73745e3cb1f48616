"""GLM-4.5: `modeling_glm4_moe.py` of transformers."""

from __future__ import annotations

from typing import ClassVar

from buddysim.training.architectures.architecture import Architecture
from buddysim.training.architectures.blocks.gated_mlp import GatedMLP
from buddysim.training.architectures.blocks.group_router import SharedSparseBlock
from buddysim.training.architectures.blocks.rms_norm import RMSNorm
from buddysim.training.architectures.blocks.rotary import rotated_partly
from buddysim.training.architectures.decoder import DecoderLayer, DecoderModel, GroupedQueryAttention
from buddysim.training.architectures.model_config import Positions
from buddysim.training.architectures.shared_experts_config import SharedExpertsConfig
from buddysim.training.autograd.module import Module
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.options.config_options import ConfigOptions


class Glm4MoeConfig(SharedExpertsConfig):
    """Keys of `Glm4MoeConfig`."""

    PARTIAL: ClassVar[float] = 0.5

    max_position_embeddings: Positions = 131_072
    use_qk_norm: bool = False


class Glm4MoeAttention(GroupedQueryAttention):
    """The first features of a head are rotated; heads are normalized once all three products are there."""

    def __init__(self, config: Glm4MoeConfig, options: ConfigOptions) -> None:
        super().__init__(config, options, qkv_bias=config.attention_bias)
        if config.use_qk_norm:
            self.q_norm: Module | None = RMSNorm(self.head_dim)
            self.k_norm: Module | None = RMSNorm(self.head_dim)

    def projected(self, hidden_states: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values."""
        shape = (*hidden_states.shape[:-1], -1, self.head_dim)
        query_states = self.q_proj(hidden_states).view(*shape)
        key_states = self.k_proj(hidden_states).view(*shape)
        value_states = self.v_proj(hidden_states).view(*shape)
        if self.q_norm is not None and self.k_norm is not None:
            query_states = self.q_norm(query_states)
            key_states = self.k_norm(key_states)
        return query_states.transpose(1, 2), key_states.transpose(1, 2), value_states.transpose(1, 2)

    def rotated(self, query: Tensor, key: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        """Return queries and keys by their positions."""
        return rotated_partly(query, key, cos, sin)


class Glm4MoeForCausalLM(DecoderModel[Glm4MoeConfig]):
    """Experts but for the first layers."""

    EXPERTS: ClassVar[bool] = True

    def __init__(self, config: Glm4MoeConfig, options: ConfigOptions) -> None:
        super().__init__(config, options, pad_token_id=config.pad_token_id)

    def make_layer(self, config: Glm4MoeConfig, index: int) -> DecoderLayer:
        """Make a layer."""
        dense = not config.has_experts(index)
        gated = GatedMLP(config.hidden_size, config.intermediate_size, config.hidden_act) if dense else None
        mlp = gated or SharedSparseBlock(config, self.options)
        return DecoderLayer(config.hidden_size, Glm4MoeAttention(config, self.options), mlp)


ARCHITECTURES = (Architecture("Glm4MoeForCausalLM", "glm4_moe", Glm4MoeConfig, Glm4MoeForCausalLM),)
