"""Keys of decoders whose experts are in groups, with one for all tokens: DeepSeek-V3 and what follows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Field

from buddysim.training.architectures.experts_config import ExpertsConfig
from buddysim.training.architectures.model_config import (
    LARGEST_DEPTH,
    ActivationName,
    Size,
    check_multiple,
    check_padding,
    problem,
)


class SharedExpertsConfig(ExpertsConfig):
    """The first layers have a gated layer each, the others experts.

    Layers that predict further tokens (``num_nextn_predict_layers``) are in no model of transformers.
    """

    ALIASES: ClassVar[Mapping[str, str]] = {"n_routed_experts": "num_local_experts"}

    hidden_act: ActivationName = "silu"
    moe_intermediate_size: Size
    n_shared_experts: Size = 1
    n_group: Size = 1
    topk_group: Size = 1
    first_k_dense_replace: Annotated[int, Field(ge=0, le=LARGEST_DEPTH)] = 1
    norm_topk_prob: bool = True
    attention_bias: bool = False
    pad_token_id: int | None = None

    def has_experts(self, layer: int) -> bool:
        """Whether a layer has experts; else it has one gated layer."""
        return layer >= self.first_k_dense_replace

    def check(self) -> None:
        """Refuse what transformers refuses, and groups in which no two experts are."""
        super().check()
        check_padding(self.pad_token_id, self.vocab_size)
        check_multiple("n_routed_experts", self.num_local_experts, "n_group", self.n_group)
        if self.topk_group > self.n_group:
            raise problem("topk_group", f"at most the {self.n_group} groups (n_group)", self.topk_group)
        in_group = self.num_local_experts // self.n_group
        if in_group < 2:
            raise problem("n_group", "groups of two experts at least", self.n_group)
        if self.num_experts_per_tok > in_group * self.topk_group:
            raise problem(
                "num_experts_per_tok", f"at most the experts of {self.topk_group} groups", self.num_experts_per_tok
            )
