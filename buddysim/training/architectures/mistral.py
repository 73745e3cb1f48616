"""Mistral 7B and its successors: `modeling_mistral.py` of transformers."""

from __future__ import annotations

from buddysim.training.architectures.architecture import Architecture
from buddysim.training.architectures.blocks.gated_mlp import GatedMLP
from buddysim.training.architectures.decoder import DecoderLayer, DecoderModel, GroupedQueryAttention
from buddysim.training.architectures.model_config import ActivationName, Positions, Size, check_padding
from buddysim.training.architectures.rotary_config import GroupedConfig
from buddysim.training.architectures.windows import Window
from buddysim.training.options.config_options import ConfigOptions


class MistralConfig(GroupedConfig):
    """Keys of `MistralConfig`: one window for all layers, 4096 tokens unless the file says otherwise (null: none)."""

    max_position_embeddings: Positions = 4096 * 32
    num_key_value_heads: Size | None = 8
    hidden_act: ActivationName = "silu"
    sliding_window: Window | None = 4096
    pad_token_id: int | None = None

    def check(self) -> None:
        """Refuse what transformers refuses."""
        super().check()
        check_padding(self.pad_token_id, self.vocab_size)


class MistralForCausalLM(DecoderModel[MistralConfig]):
    """Llama's layers under one sliding window."""

    def __init__(self, config: MistralConfig, options: ConfigOptions) -> None:
        super().__init__(config, options, masks=[config.sliding_window], pad_token_id=config.pad_token_id)

    def make_layer(self, config: MistralConfig, index: int) -> DecoderLayer:
        """Make a layer."""
        attention = GroupedQueryAttention(config, self.options)
        mlp = GatedMLP(config.hidden_size, config.intermediate_size, config.hidden_act)
        return DecoderLayer(config.hidden_size, attention, mlp)


ARCHITECTURES = (Architecture("MistralForCausalLM", "mistral", MistralConfig, MistralForCausalLM),)
