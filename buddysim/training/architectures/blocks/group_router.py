"""DeepSeek-V3's routing: sigmoid scores in fp32, experts of the best groups alone, one expert for all tokens."""

from __future__ import annotations

from buddysim.training.architectures.blocks.experts import Experts, Router, SparseBlock
from buddysim.training.architectures.blocks.gated_mlp import GatedMLP
from buddysim.training.architectures.shared_experts_config import SharedExpertsConfig
from buddysim.training.autograd import functional as F
from buddysim.training.autograd.dtypes import bool8, float32
from buddysim.training.autograd.tape import active_tape
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.options.config_options import ConfigOptions


class GroupRouter(Router):
    """Chooses groups by the sum of their two best scores, then experts of these groups.

    A bias that no gradient trains is added to the scores for the choice alone.
    """

    def __init__(self, config: SharedExpertsConfig) -> None:
        super().__init__(
            config.hidden_size,
            config.num_local_experts,
            config.num_experts_per_tok,
            cast="before",
            normalized=config.norm_topk_prob,
        )
        self.groups, self.selected_groups = config.n_group, config.topk_group
        tape = active_tape()
        self.e_score_correction_bias = tape.buffer(
            (config.num_local_experts,), tape.default_dtype, "e_score_correction_bias"
        )

    def forward(self, hidden_states: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return logits, weights and numbers of the chosen experts."""
        hidden_states = hidden_states.view(-1, hidden_states.shape[-1])
        router_logits = F.linear(hidden_states.to(float32), self.weight.to(float32))
        scores = F.sigmoid(router_logits)
        topk_indices, *_held = self._selected_experts(scores)
        topk_weights = F.gather(scores, topk_indices)
        if self.normalized:
            denominator = topk_weights.sum(dim=-1, keepdim=True) + 1e-20
            topk_weights.div_(denominator)
        topk_weights = topk_weights * 1.0
        return router_logits, topk_weights, topk_indices

    def _selected_experts(self, scores: Tensor) -> tuple[Tensor, ...]:
        """Return the numbers of the experts, and what `forward` of the class holds until it returns."""
        experts = self.weight.shape[0]
        scores_for_choice = scores + self.e_score_correction_bias
        group_scores = F.topk(scores_for_choice.view(-1, self.groups, experts // self.groups), 2)[0].sum(dim=-1)
        selected_groups = F.topk(group_scores, self.selected_groups)[1]
        group_mask = F.zeros_like(group_scores)
        F.scatter_(group_mask, selected_groups)
        score_mask = group_mask.unsqueeze(-1).expand(-1, self.groups, experts // self.groups).reshape(-1, experts)
        scores_for_choice = scores_for_choice.masked_fill(F.logical_not(score_mask.to(bool8)), -1e30)
        topk_indices = F.topk(scores_for_choice, self.per_token)[1]
        return topk_indices, scores_for_choice, group_scores, selected_groups, group_mask, score_mask


class SharedSparseBlock(SparseBlock):
    """Experts of such a router, and a gated layer that every token takes."""

    def __init__(self, config: SharedExpertsConfig, options: ConfigOptions) -> None:
        experts = Experts(
            config.hidden_size, config.moe_intermediate_size, config.num_local_experts, config.hidden_act, options
        )
        super().__init__(GroupRouter(config), experts, router_first=False)
        inner = config.moe_intermediate_size * config.n_shared_experts
        self.shared_experts = GatedMLP(config.hidden_size, inner, config.hidden_act)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Return the layer's output."""
        residuals = hidden_states
        _, topk_weights, topk_indices = self.gate(hidden_states)
        hidden_states = hidden_states.view(-1, hidden_states.shape[-1])
        hidden_states = self.experts(hidden_states, topk_indices, topk_weights).view(*residuals.shape)
        hidden_states = hidden_states + self.shared_experts(residuals)
        return hidden_states
