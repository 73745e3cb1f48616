"""Qwen 3 with experts: `modeling_qwen3_moe.py` of transformers."""

from __future__ import annotations

from typing import ClassVar

from buddysim.training.architectures.architecture import Architecture
from buddysim.training.architectures.blocks.experts import Experts, Router, SparseBlock
from buddysim.training.architectures.blocks.gated_mlp import GatedMLP
from buddysim.training.architectures.decoder import DecoderLayer, DecoderModel, GroupedQueryAttention
from buddysim.training.architectures.qwen3_moe_config import Qwen3MoeConfig
from buddysim.training.autograd.module import Module
from buddysim.training.options.config_options import ConfigOptions


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
