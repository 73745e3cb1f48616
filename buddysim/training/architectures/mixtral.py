"""Mixtral: `modeling_mixtral.py` of transformers."""

from __future__ import annotations

from typing import ClassVar

from buddysim.training.architectures.architecture import Architecture
from buddysim.training.architectures.blocks.experts import Experts, Router, SparseBlock
from buddysim.training.architectures.decoder import DecoderLayer, DecoderModel, GroupedQueryAttention
from buddysim.training.architectures.experts_config import ExpertsConfig
from buddysim.training.architectures.model_config import ActivationName, Positions, Size, check_padding
from buddysim.training.architectures.windows import Window
from buddysim.training.options.config_options import ConfigOptions


class MixtralConfig(ExpertsConfig):
    """Keys of `MixtralConfig`."""

    max_position_embeddings: Positions = 4096 * 32
    num_key_value_heads: Size | None = 8
    rms_norm_eps: float = 1e-5
    hidden_act: ActivationName = "silu"
    sliding_window: Window | None = None
    num_experts_per_tok: Size = 2
    num_local_experts: Size = 8
    router_jitter_noise: float = 0.0
    pad_token_id: int | None = None

    def check(self) -> None:
        """Refuse what transformers refuses."""
        super().check()
        check_padding(self.pad_token_id, self.vocab_size)


class MixtralForCausalLM(DecoderModel[MixtralConfig]):
    """Every layer has experts; the weights of those chosen sum to 1 and stay fp32."""

    EXPERTS: ClassVar[bool] = True

    def __init__(self, config: MixtralConfig, options: ConfigOptions) -> None:
        super().__init__(config, options, masks=[config.sliding_window], pad_token_id=config.pad_token_id)

    def make_layer(self, config: MixtralConfig, index: int) -> DecoderLayer:
        """Make a layer."""
        attention = GroupedQueryAttention(config, self.options)
        router = Router(config.hidden_size, config.num_local_experts, config.num_experts_per_tok, cast="before")
        experts = Experts(
            config.hidden_size, config.intermediate_size, config.num_local_experts, config.hidden_act, self.options
        )
        return DecoderLayer(config.hidden_size, attention, SparseBlock(router, experts))


ARCHITECTURES = (Architecture("MixtralForCausalLM", "mixtral", MixtralConfig, MixtralForCausalLM),)
