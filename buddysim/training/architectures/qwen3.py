"""Qwen 3: `modeling_qwen3.py` of transformers."""

from __future__ import annotations

from buddysim.training.architectures.architecture import Architecture
from buddysim.training.architectures.blocks.gated_mlp import GatedMLP
from buddysim.training.architectures.decoder import DecoderLayer, DecoderModel, GroupedQueryAttention
from buddysim.training.architectures.model_config import ActivationName, Positions, Size
from buddysim.training.architectures.windows import WindowedConfig
from buddysim.training.options.config_options import ConfigOptions


class Qwen3Config(WindowedConfig):
    """Keys of `Qwen3Config`."""

    max_position_embeddings: Positions = 32768
    num_key_value_heads: Size | None = 32
    head_dim: Size | None = 128
    hidden_act: ActivationName = "silu"
    attention_bias: bool = False


class Qwen3ForCausalLM(DecoderModel[Qwen3Config]):
    """Queries and keys are normalized over the features of a head."""

    def __init__(self, config: Qwen3Config, options: ConfigOptions) -> None:
        super().__init__(config, options, windows=config.windows, masks=config.masks, pad_token_id=config.pad_token_id)

    def make_layer(self, config: Qwen3Config, index: int) -> DecoderLayer:
        """Make a layer."""
        bias = config.attention_bias
        attention = GroupedQueryAttention(config, self.options, qkv_bias=bias, output_bias=bias, norms=True)
        mlp = GatedMLP(config.hidden_size, config.intermediate_size, config.hidden_act)
        return DecoderLayer(config.hidden_size, attention, mlp)


ARCHITECTURES = (Architecture("Qwen3ForCausalLM", "qwen3", Qwen3Config, Qwen3ForCausalLM),)
