"""gpt-oss's experts: routing by logits alone, biases, gates and products that are clamped."""

from __future__ import annotations

from buddysim.training.architectures.blocks.experts import Experts
from buddysim.training.architectures.experts_config import ExpertsConfig
from buddysim.training.autograd import functional as F
from buddysim.training.autograd.module import Module, Parameter
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.options.config_options import ConfigOptions


class LogitRouter(Module):
    """Selects experts by their logits, whose softmax is over those that a token takes."""

    def __init__(self, config: ExpertsConfig) -> None:
        super().__init__()
        self.per_token = config.num_experts_per_tok
        self.weight = Parameter((config.num_local_experts, config.hidden_size))
        self.bias = Parameter((config.num_local_experts,))

    def forward(self, hidden_states: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return logits, weights and numbers of the chosen experts."""
        router_logits = F.linear(hidden_states, self.weight, self.bias)
        router_top_value, router_indices = F.topk(router_logits, self.per_token, -1)
        router_scores = F.softmax(router_top_value, 1, dtype=router_top_value.dtype)
        return router_logits, router_scores, router_indices


class ClampedExperts(Experts):
    """Gates and products alternate in memory."""

    def _gated(self, gate_up_out: Tensor) -> Tensor:
        gate, up = gate_up_out[..., ::2], gate_up_out[..., 1::2]
        gate = F.clamp(gate, max=7.0)
        up = F.clamp(up, min=-7.0, max=7.0)
        glu = gate * F.sigmoid(gate * 1.702)
        gated_output = (up + 1) * glu
        return gated_output


class ClampedSparseBlock(Module):
    """A router and its experts."""

    def __init__(self, config: ExpertsConfig, options: ConfigOptions) -> None:
        super().__init__()
        self.router = LogitRouter(config)
        experts, inner = config.num_local_experts, config.intermediate_size
        self.experts = ClampedExperts(config.hidden_size, inner, experts, "sigmoid", options, transposed=True)

    def forward(self, hidden_states: Tensor) -> tuple[Tensor, Tensor]:
        """Return the layer's output, and the weights of the experts."""
        batch_size, sequence_length, hidden_dim = hidden_states.shape
        hidden_states = hidden_states.reshape(-1, hidden_dim)
        _, router_scores, router_indices = self.router(hidden_states)
        hidden_states = self.experts(hidden_states, router_indices, router_scores)
        hidden_states = hidden_states.reshape(batch_size, sequence_length, hidden_dim)
        return hidden_states, router_scores
