"""gpt-oss: `modeling_gpt_oss.py` of transformers.

Each head has a sink: a score next to those of the tokens, so that a token may attend to none. PyTorch's fused
attention has no sinks, so scores are in memory.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, ClassVar

from pydantic import Field

from buddysim.training.architectures.architecture import Architecture
from buddysim.training.architectures.blocks.attention import Weighted, attend
from buddysim.training.architectures.blocks.clamped_experts import ClampedSparseBlock
from buddysim.training.architectures.blocks.rms_norm import LateCastRMSNorm
from buddysim.training.architectures.blocks.rotary import RotaryEmbedding
from buddysim.training.architectures.blocks.sinks import sink_attention
from buddysim.training.architectures.decoder import DecoderLayer, DecoderModel, GroupedQueryAttention, Rotations
from buddysim.training.architectures.experts_config import ExpertsConfig
from buddysim.training.architectures.model_config import Positions, Size
from buddysim.training.architectures.windows import AlternatingConfig, Window
from buddysim.training.autograd import functional as F
from buddysim.training.autograd.module import Parameter
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.options.config_options import Attention, ConfigOptions


class GptOssConfig(AlternatingConfig, ExpertsConfig):
    """Keys of `GptOssConfig`; windows alternate with full attention unless ``layer_types`` says otherwise."""

    max_position_embeddings: Positions = 131_072
    num_key_value_heads: Size | None = 8
    head_dim: Size | None = 64
    rms_norm_eps: Annotated[float, Field(gt=0, lt=1)] = 1e-5
    sliding_window: Window | None = 128
    attention_bias: bool = True


class GptOssAttention(GroupedQueryAttention):
    """Halves of a head's features are rotated without a copy of either."""

    def __init__(self, config: GptOssConfig, options: ConfigOptions) -> None:
        super().__init__(config, options, qkv_bias=config.attention_bias, output_bias=config.attention_bias)
        self.sinks = Parameter((config.num_attention_heads,))

    def attended(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Weighted:
        """Return the result for each token, and the weights."""
        return attend(self.options, self.call, query, key, value, mask, partial(sink_attention, self.sinks))

    def rotated(self, query: Tensor, key: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        """Return queries and keys by their positions."""
        cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        return _rotated_halves(query, cos, sin), _rotated_halves(key, cos, sin)


def _rotated_halves(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first_half, second_half = x.chunk(2, -1)
    first_ = first_half * cos - second_half * sin
    second_ = second_half * cos + first_half * sin
    return F.cat((first_, second_), -1)


class GptOssRotaryEmbedding(RotaryEmbedding):
    """Cosines and sines of half of a head's features."""

    def spread(self, freqs: Tensor) -> Tensor:
        """Return the angles themselves."""
        return freqs


class GptOssDecoderLayer(DecoderLayer):
    """Llama's layer, which holds the weights of the chosen experts until it returns."""

    def forward(
        self, hidden_states: Tensor, mask: Tensor | None, position_embeddings: Rotations, position_ids: Tensor
    ) -> Tensor:
        """Return the layer's output; the positions are held by a layer that is recomputed, and not read."""
        residual = hidden_states
        hidden_states = self.input_layernorm(hidden_states)
        hidden_states, _ = self.self_attn(hidden_states, mask, position_embeddings)
        hidden_states = residual + hidden_states
        residual = hidden_states
        hidden_states = self.post_attention_layernorm(hidden_states)
        hidden_states, _ = self.mlp(hidden_states)
        hidden_states = residual + hidden_states
        return hidden_states


class GptOssForCausalLM(DecoderModel[GptOssConfig]):
    """Every layer has experts; masks don't see packed documents."""

    ATTENTIONS: ClassVar[tuple[Attention, ...]] = ("eager",)
    EXPERTS: ClassVar[bool] = True
    PACKED: ClassVar[bool] = False

    def __init__(self, config: GptOssConfig, options: ConfigOptions) -> None:
        masks = [None, config.sliding_window]
        super().__init__(config, options, windows=config.windows, masks=masks, pad_token_id=config.pad_token_id)

    def make_layer(self, config: GptOssConfig, index: int) -> GptOssDecoderLayer:
        """Make a layer."""
        attention = GptOssAttention(config, self.options)
        return GptOssDecoderLayer(
            config.hidden_size, attention, ClampedSparseBlock(config, self.options), LateCastRMSNorm
        )

    def make_norm(self, features: int) -> LateCastRMSNorm:
        """Make the last norm."""
        return LateCastRMSNorm(features)

    def make_rotary(self, config: GptOssConfig) -> GptOssRotaryEmbedding:
        """Make what gives the cosines and sines of positions."""
        return GptOssRotaryEmbedding(config)


ARCHITECTURES = (Architecture("GptOssForCausalLM", "gpt_oss", GptOssConfig, GptOssForCausalLM),)
