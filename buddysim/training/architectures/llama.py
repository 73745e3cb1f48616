"""Llama 1 to 3 and what shares its layers (TinyLlama, Yi, DeepSeek's first): `modeling_llama.py` of transformers."""

from __future__ import annotations

from typing import ClassVar

from buddysim.training.architectures.architecture import Architecture
from buddysim.training.architectures.blocks.gated_mlp import GatedMLP
from buddysim.training.architectures.decoder import DecoderLayer, DecoderModel, GroupedQueryAttention
from buddysim.training.architectures.model_config import ActivationName, check_padding
from buddysim.training.architectures.rotary_config import GroupedConfig
from buddysim.training.options.config_options import ConfigOptions


class LlamaConfig(GroupedConfig):
    """Keys of `LlamaConfig`."""

    DIVIDED: ClassVar[bool] = True

    hidden_act: ActivationName = "silu"
    attention_bias: bool = False
    mlp_bias: bool = False
    pad_token_id: int | None = None

    def check(self) -> None:
        """Refuse what transformers refuses."""
        super().check()
        check_padding(self.pad_token_id, self.vocab_size)


class LlamaForCausalLM(DecoderModel[LlamaConfig]):
    """Biases where the configuration has them."""

    def __init__(self, config: LlamaConfig, options: ConfigOptions) -> None:
        super().__init__(config, options, pad_token_id=config.pad_token_id)

    def make_layer(self, config: LlamaConfig, index: int) -> DecoderLayer:
        """Make a layer."""
        bias = config.attention_bias
        attention = GroupedQueryAttention(config, self.options, qkv_bias=bias, output_bias=bias)
        mlp = GatedMLP(config.hidden_size, config.intermediate_size, config.hidden_act, bias=config.mlp_bias)
        return DecoderLayer(config.hidden_size, attention, mlp)


ARCHITECTURES = (Architecture("LlamaForCausalLM", "llama", LlamaConfig, LlamaForCausalLM),)
