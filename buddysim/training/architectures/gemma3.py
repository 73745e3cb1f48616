"""Gemma 3's language model: `modeling_gemma3.py` of transformers."""

from __future__ import annotations

from typing import Any, ClassVar

from buddysim.training.architectures.architecture import Architecture
from buddysim.training.architectures.blocks.attention import AttentionCall
from buddysim.training.architectures.blocks.rms_norm import GemmaRMSNorm
from buddysim.training.architectures.blocks.rotary import Rotary, RotaryEmbedding
from buddysim.training.architectures.decoder import GroupedQueryAttention, Rotations
from buddysim.training.architectures.gemma2 import Gemma2Config, Gemma2DecoderLayer, Gemma2ForCausalLM
from buddysim.training.architectures.model_config import Depth, Positions, Positive, problem
from buddysim.training.autograd.module import Module
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.options.config_options import Attention, ConfigOptions


class Gemma3TextConfig(Gemma2Config):
    """Keys of `Gemma3TextConfig`; every sixth layer has full attention unless ``layer_types`` says otherwise."""

    max_position_embeddings: Positions = 131_072
    sliding_window_pattern: Depth = 6
    final_logit_softcapping: Positive | None = None
    attn_logit_softcapping: Positive | None = None

    @classmethod
    def _adjusted(cls, parameters: dict[str, Any], content: dict[str, Any]) -> dict[str, Any]:
        """Return those of full attention; windows are rotated without scaling, by another base."""
        for name in ("full_attention", "sliding_attention"):
            if not isinstance(parameters.get(name, {}), dict):
                raise problem(f"rope_parameters.{name}", "an object", parameters[name])
        kind = parameters.get("sliding_attention", {}).get("rope_type", "default")
        if kind != "default":
            raise problem("rope_parameters.sliding_attention.rope_type", "default (nothing else is simulated)", kind)
        own = parameters.get("full_attention", parameters)
        return {**own, "partial_rotary_factor": parameters["partial_rotary_factor"]}

    @property
    def windows(self) -> list[int | None]:
        """The window of each layer."""
        if self.layer_types is not None:
            return super().windows
        depth = self.num_hidden_layers
        return [self.sliding_window if (index + 1) % self.sliding_window_pattern else None for index in range(depth)]


class Gemma3Attention(GroupedQueryAttention):
    """Queries and keys are normalized over the features of a head, once all three are there."""

    def __init__(self, config: Gemma3TextConfig, options: ConfigOptions) -> None:
        bias = config.attention_bias
        super().__init__(config, options, qkv_bias=bias, output_bias=bias)
        self.call = AttentionCall(
            scaling=config.query_pre_attn_scalar**-0.5,
            groups=config.num_attention_heads // config.key_value_heads,
            dropout=config.attention_dropout,
        )
        self.q_norm: Module = GemmaRMSNorm(self.head_dim)
        self.k_norm: Module = GemmaRMSNorm(self.head_dim)

    def projected(self, hidden_states: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values."""
        query_states = self.heads(self.q_proj(hidden_states))
        key_states = self.heads(self.k_proj(hidden_states))
        value_states = self.heads(self.v_proj(hidden_states))
        query_states = self.q_norm(query_states)
        key_states = self.k_norm(key_states)
        return query_states, key_states, value_states


class Gemma3RotaryEmbedding(Rotary):
    """Two embeddings: of layers with a window, and of the others; of a kind that no layer has, none."""

    def __init__(self, config: Gemma3TextConfig) -> None:
        super().__init__()
        kinds = {window is not None for window in config.windows}
        self.full_attention = RotaryEmbedding(config) if False in kinds else None
        self.sliding_attention = RotaryEmbedding(config, scaled=False) if True in kinds else None

    def forward(self, features: Tensor, position_ids: Tensor) -> dict[bool, Rotations]:
        """Return cosines and sines for all positions, by whether a layer has a window."""
        both = {False: self.full_attention, True: self.sliding_attention}
        return {window: one(features, position_ids) for window, one in both.items() if one is not None}

    def of_layer(self, made: dict[bool, Rotations], window: int | None) -> Rotations:
        """Return those of a layer."""
        return made[window is not None]


class Gemma3ForCausalLM(Gemma2ForCausalLM):
    """Soft caps of logits alone."""

    ATTENTIONS: ClassVar[tuple[Attention, ...]] = ("eager", "efficient", "flash")

    def make_layer(self, config: Gemma2Config, index: int) -> Gemma2DecoderLayer:
        """Make a layer."""
        assert isinstance(config, Gemma3TextConfig)
        return Gemma2DecoderLayer(config, Gemma3Attention(config, self.options))

    def make_rotary(self, config: Gemma2Config) -> Rotary:
        """Make what gives the cosines and sines of positions."""
        assert isinstance(config, Gemma3TextConfig)
        return Gemma3RotaryEmbedding(config)


ARCHITECTURES = (Architecture("Gemma3ForCausalLM", "gemma3_text", Gemma3TextConfig, Gemma3ForCausalLM),)
