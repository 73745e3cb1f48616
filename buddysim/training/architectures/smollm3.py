"""SmolLM3: `modeling_smollm3.py` of transformers."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from buddysim.training.architectures.architecture import Architecture
from buddysim.training.architectures.blocks.gated_mlp import GatedMLP
from buddysim.training.architectures.decoder import DecoderLayer, DecoderModel, GroupedQueryAttention
from buddysim.training.architectures.model_config import (
    ActivationName,
    Depth,
    LayerType,
    Positions,
    Size,
    check_layer_types,
    check_padding,
    problem,
)
from buddysim.training.architectures.rotary_config import GroupedConfig
from buddysim.training.architectures.windows import Window
from buddysim.training.options.config_options import ConfigOptions


class SmolLM3Config(GroupedConfig):
    """Keys of `SmolLM3Config`; every fourth layer has no rotary embedding unless ``no_rope_layers`` says otherwise."""

    max_position_embeddings: Positions = 32768
    num_key_value_heads: Size | None = 4
    hidden_act: ActivationName = "silu"
    tie_word_embeddings: bool = True
    attention_bias: bool = False
    mlp_bias: bool = False
    use_sliding_window: bool = False
    sliding_window: Window | None = None
    no_rope_layers: list[Annotated[int, Field(ge=0, le=1)]] | None = None
    no_rope_layer_interval: Depth = 4
    layer_types: list[LayerType] | None = None
    pad_token_id: int | None = None  # transformers' 128004 needs SmolLM3's own vocabulary; memory doesn't depend on it

    @property
    def rotary(self) -> list[bool]:
        """Whether each layer has a rotary embedding."""
        if self.no_rope_layers is not None:
            return [bool(one) for one in self.no_rope_layers]
        return [bool((index + 1) % self.no_rope_layer_interval) for index in range(self.num_hidden_layers)]

    @property
    def windows(self) -> list[int | None]:
        """The window of each layer: of those without a rotary embedding, where the switch is on."""
        window = self.sliding_window if self.use_sliding_window else None
        if self.layer_types is not None:
            return [window if kind == "sliding_attention" else None for kind in self.layer_types]
        return [None if rotary else window for rotary in self.rotary[: self.num_hidden_layers]]

    def check(self) -> None:
        """Refuse lists that don't match the layers, and a padding token outside the vocabulary."""
        super().check()
        check_layer_types(self.layer_types, self.num_hidden_layers, self.sliding_window)
        check_padding(self.pad_token_id, self.vocab_size)
        if len(self.rotary) < self.num_hidden_layers:
            raise problem(
                "no_rope_layers", f"a number for each of {self.num_hidden_layers} layers", self.no_rope_layers
            )


class SmolLM3ForCausalLM(DecoderModel[SmolLM3Config]):
    """Llama's layers, some of them without positions."""

    def __init__(self, config: SmolLM3Config, options: ConfigOptions) -> None:
        sliding = [window for window in config.windows if window is not None]
        masks: list[int | None] = [None, *sliding[:1]]
        super().__init__(config, options, windows=config.windows, masks=masks, pad_token_id=config.pad_token_id)

    def make_layer(self, config: SmolLM3Config, index: int) -> DecoderLayer:
        """Make a layer."""
        bias = config.attention_bias
        attention = GroupedQueryAttention(
            config, self.options, qkv_bias=bias, output_bias=bias, rotary=config.rotary[index]
        )
        mlp = GatedMLP(config.hidden_size, config.intermediate_size, config.hidden_act, bias=config.mlp_bias)
        return DecoderLayer(config.hidden_size, attention, mlp)


ARCHITECTURES = (Architecture("SmolLM3ForCausalLM", "smollm3", SmolLM3Config, SmolLM3ForCausalLM),)
