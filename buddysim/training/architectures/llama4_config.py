"""Keys of Llama 4's language model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from buddysim.training.architectures.experts_config import ExpertsConfig
from buddysim.training.architectures.model_config import ActivationName, Depth, Positions, Size, check_padding, problem

Kind = Literal["full_attention", "chunked_attention"]
Layer = Annotated[int, Field(ge=0, le=1 << 10)]


class Llama4TextConfig(ExpertsConfig):
    """Keys of `Llama4TextConfig`; every fourth layer has no positions unless ``no_rope_layers`` says otherwise."""

    ALIASES: ClassVar[Mapping[str, str]] = {}

    intermediate_size_mlp: Size
    max_position_embeddings: Positions = 131_072
    num_key_value_heads: Size | None = 8
    head_dim: Size | None = 128
    hidden_act: ActivationName = "silu"
    attention_bias: bool = False
    use_qk_norm: bool = True
    moe_layers: list[Layer] | None = None
    interleave_moe_layer_step: Depth = 1
    no_rope_layers: list[Annotated[int, Field(ge=0, le=1)]] | None = None
    no_rope_layer_interval: Depth = 4
    attention_chunk_size: Positions | None = 8192
    layer_types: list[Kind] | None = None
    attn_temperature_tuning: bool = True
    pad_token_id: int | None = None

    @property
    def rotary(self) -> list[bool]:
        """Whether each layer has a rotary embedding."""
        every = [(index + 1) % self.no_rope_layer_interval for index in range(self.num_hidden_layers)]
        return [bool(one) for one in self.no_rope_layers or every]

    @property
    def windows(self) -> list[int | None]:
        """The tokens of each layer's chunks; None: it attends to all earlier tokens."""
        kinds = self.layer_types or ["chunked_attention" if one else "full_attention" for one in self.rotary]
        return [self.attention_chunk_size if kind == "chunked_attention" else None for kind in kinds]

    def has_experts(self, layer: int) -> bool:
        """Whether a layer has experts; else it has one gated layer."""
        step = self.interleave_moe_layer_step
        return layer in self.moe_layers if self.moe_layers is not None else (layer + 1) % step == 0

    def check(self) -> None:
        """Refuse lists that don't match the layers, and a padding token outside the vocabulary."""
        super().check()
        check_padding(self.pad_token_id, self.vocab_size)
        for name, listed in (("no_rope_layers", self.rotary), ("layer_types", self.windows)):
            if len(listed) != self.num_hidden_layers:
                raise problem(name, f"one for each of {self.num_hidden_layers} layers", len(listed))
