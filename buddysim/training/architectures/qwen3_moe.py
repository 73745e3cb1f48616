"""Qwen 3 with experts: `modeling_qwen3_moe.py` of transformers."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from buddysim.training.architectures.architecture import Architecture
from buddysim.training.architectures.blocks.experts import Experts, Router, SparseBlock
from buddysim.training.architectures.blocks.gated_mlp import GatedMLP
from buddysim.training.architectures.decoder import DecoderLayer, DecoderModel, GroupedQueryAttention
from buddysim.training.architectures.experts_config import ExpertsConfig
from buddysim.training.architectures.model_config import (
    LARGEST_DEPTH,
    ActivationName,
    Depth,
    Positions,
    Size,
    check_padding,
    problem,
)
from buddysim.training.architectures.windows import Window
from buddysim.training.autograd.module import Module
from buddysim.training.options.config_options import ConfigOptions


class Qwen3MoeConfig(ExpertsConfig):
    """Keys of `Qwen3MoeConfig`."""

    max_position_embeddings: Positions = 32768
    num_key_value_heads: Size | None = 4
    hidden_act: ActivationName = "silu"
    attention_bias: bool = False
    use_sliding_window: bool = False
    sliding_window: Window | None = 4096
    decoder_sparse_step: Depth = 1
    moe_intermediate_size: Size = 768
    num_experts_per_tok: Size = 8
    num_local_experts: Size = 128
    norm_topk_prob: bool = False
    mlp_only_layers: list[Annotated[int, Field(ge=0, lt=LARGEST_DEPTH)]] | None = None
    pad_token_id: int | None = None

    @property
    def window(self) -> int | None:
        """Tokens of a window; None where the switch is off."""
        return self.sliding_window if self.use_sliding_window else None

    def has_experts(self, layer: int) -> bool:
        """Whether a layer has experts; else it has one gated layer."""
        return layer not in (self.mlp_only_layers or ()) and (layer + 1) % self.decoder_sparse_step == 0

    def check(self) -> None:
        """Refuse what transformers refuses, and layers that aren't there."""
        super().check()
        check_padding(self.pad_token_id, self.vocab_size)
        beyond = [layer for layer in self.mlp_only_layers or () if layer >= self.num_hidden_layers]
        if beyond:
            raise problem("mlp_only_layers", f"layers below num_hidden_layers {self.num_hidden_layers}", beyond[0])


class Qwen3MoeForCausalLM(DecoderModel[Qwen3MoeConfig]):
    """Qwen 3's attention; the weights of the chosen experts are cast to the features' dtype."""

    EXPERTS: ClassVar[bool] = True

    def __init__(self, config: Qwen3MoeConfig, options: ConfigOptions) -> None:
        super().__init__(config, options, masks=[config.window], pad_token_id=config.pad_token_id)

    def make_layer(self, config: Qwen3MoeConfig, index: int) -> DecoderLayer:
        """Make a layer."""
        bias = config.attention_bias
        attention = GroupedQueryAttention(config, self.options, qkv_bias=bias, output_bias=bias, norms=True)
        return DecoderLayer(config.hidden_size, attention, self._mlp(config, index))

    def _mlp(self, config: Qwen3MoeConfig, index: int) -> Module:
        if not config.has_experts(index):
            return GatedMLP(config.hidden_size, config.intermediate_size, config.hidden_act)
        experts = Experts(
            config.hidden_size, config.moe_intermediate_size, config.num_local_experts, config.hidden_act, self.options
        )
        router = Router(
            config.hidden_size,
            config.num_local_experts,
            config.num_experts_per_tok,
            cast="after",
            normalized=config.norm_topk_prob,
        )
        return SparseBlock(router, experts, router_first=False)


ARCHITECTURES = (Architecture("Qwen3MoeForCausalLM", "qwen3_moe", Qwen3MoeConfig, Qwen3MoeForCausalLM),)
