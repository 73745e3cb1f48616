"""Keys of Qwen3-Next."""

from __future__ import annotations

from typing import ClassVar, Literal

from buddysim.training.architectures.model_config import Depth, Size, check_multiple, problem
from buddysim.training.architectures.qwen3_moe_config import Qwen3MoeConfig


class Qwen3NextConfig(Qwen3MoeConfig):
    """Three of four layers have a recurrence instead of attention unless ``layer_types`` says otherwise."""

    PARTIAL: ClassVar[float] = 0.25

    num_key_value_heads: Size | None = 2
    head_dim: Size | None = 256
    moe_intermediate_size: Size = 512
    shared_expert_intermediate_size: Size = 512
    num_experts_per_tok: Size = 10
    num_local_experts: Size = 512
    norm_topk_prob: bool = True
    full_attention_interval: Depth = 4
    layer_types: list[Literal["full_attention", "linear_attention"]] | None = None
    linear_conv_kernel_dim: Size = 4
    linear_key_head_dim: Size = 128
    linear_value_head_dim: Size = 128
    linear_num_key_heads: Size = 16
    linear_num_value_heads: Size = 32

    def is_linear(self, layer: int) -> bool:
        """Whether a layer has a recurrence."""
        if self.layer_types is not None:
            return self.layer_types[layer] == "linear_attention"
        return (layer + 1) % self.full_attention_interval != 0

    def check(self) -> None:
        """Refuse heads that don't divide, and another number of kinds than of layers."""
        super().check()
        check_multiple(
            "linear_num_value_heads", self.linear_num_value_heads, "linear_num_key_heads", self.linear_num_key_heads
        )
        if self.layer_types is not None and len(self.layer_types) != self.num_hidden_layers:
            raise problem("layer_types", f"one for each of {self.num_hidden_layers} layers", len(self.layer_types))
