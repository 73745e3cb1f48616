"""Qwen 1.5, 2 and 2.5: `modeling_qwen2.py` of transformers."""

from __future__ import annotations

from buddysim.training.architectures.architecture import Architecture
from buddysim.training.architectures.blocks.gated_mlp import GatedMLP
from buddysim.training.architectures.decoder import DecoderLayer, DecoderModel, GroupedQueryAttention
from buddysim.training.architectures.model_config import ActivationName, Positions, Size
from buddysim.training.architectures.windows import WindowedConfig
from buddysim.training.options.config_options import ConfigOptions


class Qwen2Config(WindowedConfig):
    """Keys of `Qwen2Config`."""

    max_position_embeddings: Positions = 32768
    num_key_value_heads: Size | None = 32
    hidden_act: ActivationName = "silu"


class Qwen2ForCausalLM(DecoderModel[Qwen2Config]):
    """Biases of queries, keys and values."""

    def __init__(self, config: Qwen2Config, options: ConfigOptions) -> None:
        super().__init__(config, options, windows=config.windows, masks=config.masks, pad_token_id=config.pad_token_id)

    def make_layer(self, config: Qwen2Config, index: int) -> DecoderLayer:
        """Make a layer."""
        attention = GroupedQueryAttention(config, self.options, qkv_bias=True)
        mlp = GatedMLP(config.hidden_size, config.intermediate_size, config.hidden_act)
        return DecoderLayer(config.hidden_size, attention, mlp)


ARCHITECTURES = (Architecture("Qwen2ForCausalLM", "qwen2", Qwen2Config, Qwen2ForCausalLM),)
