"""Keys of Qwen 3 with experts."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

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
