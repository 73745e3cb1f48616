"""Llama 4's experts: every expert gets every token, weighted by a score that is 0 where the expert isn't selected."""

from __future__ import annotations

from buddysim.training.architectures.blocks.activations import Activation
from buddysim.training.architectures.blocks.gated_mlp import GatedMLP
from buddysim.training.architectures.experts_config import ExpertsConfig
from buddysim.training.autograd import functional as F
from buddysim.training.autograd.module import Module, Parameter
from buddysim.training.autograd.tensor import Tensor


class FullExperts(Module):
    """The gated layers of all experts, as two batched products of all tokens."""

    def __init__(self, features: int, inner: int, experts: int, activation: str) -> None:
        super().__init__()
        self.features = features
        self.gate_up_proj = Parameter((experts, features, 2 * inner))
        self.down_proj = Parameter((experts, inner, features))
        self.act_fn = Activation(activation)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Return the results of all experts, one after the other."""
        hidden_states = hidden_states.view(self.gate_up_proj.shape[0], -1, self.features)
        gate_up = F.bmm(hidden_states, self.gate_up_proj)
        gate, up = gate_up.chunk(2, -1)
        next_states = F.bmm(up * self.act_fn(gate), self.down_proj)
        next_states = next_states.view(-1, self.features)
        return next_states


class ScoreRouter(Module):
    """A sigmoid of the largest logits; of the others 0."""

    def __init__(self, config: ExpertsConfig) -> None:
        super().__init__()
        self.weight = Parameter((config.num_local_experts, config.hidden_size))
        self.per_token = config.num_experts_per_tok

    def forward(self, hidden_states: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores and logits."""
        router_logits = F.linear(hidden_states, self.weight)
        router_top_value, router_indices = F.topk(router_logits, self.per_token, 1)
        router_scores = F.scatter_(F.full_like(router_logits), router_indices, router_top_value)
        router_scores = F.sigmoid(router_scores.float()).to(router_scores.dtype)
        return router_scores, router_logits


class FullSparseBlock(Module):
    """Such experts, and a gated layer that every token takes."""

    def __init__(self, config: ExpertsConfig, activation: str) -> None:
        super().__init__()
        features, inner, experts = config.hidden_size, config.intermediate_size, config.num_local_experts
        self.experts = FullExperts(features, inner, experts, activation)
        self.router = ScoreRouter(config)
        self.shared_expert = GatedMLP(features, inner, activation)

    def forward(self, hidden_states: Tensor) -> tuple[Tensor, Tensor]:
        """Return the layer's output, and the router's logits."""
        hidden_states = hidden_states.reshape(-1, hidden_states.shape[-1])
        router_scores, router_logits = self.router(hidden_states)
        experts = router_scores.shape[1]
        routed_in = hidden_states.repeat(experts, 1)
        routed_in = routed_in * router_scores.transpose(0, 1).reshape(-1, 1)
        routed_out = self.experts(routed_in)
        out = self.shared_expert(hidden_states)
        out.add_(routed_out.reshape(experts, -1, routed_out.shape[-1]).sum(dim=0))
        return out, router_logits
