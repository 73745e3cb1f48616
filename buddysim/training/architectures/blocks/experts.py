"""Experts: each token takes some of several gated layers; transformers runs all of them in one grouped product.

The sorted rows of all experts lie one after another, so bytes don't depend on how many tokens an expert gets; the sizes
of the products do. Tokens go to experts uniformly or by a given skew, as values aren't simulated. With a capacity, rows
beyond it are left out, and the results are added to their tokens instead of brought back into order.
"""

from __future__ import annotations

import math
from typing import Literal

from buddysim.training.architectures.blocks.activations import Activation
from buddysim.training.autograd import functional as F
from buddysim.training.autograd.dtypes import float32, int32
from buddysim.training.autograd.module import Module, Parameter
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.options.config_options import ConfigOptions


class Router(Module):
    """Chooses experts by the largest of their softmax.

    Parameters
    ----------
    per_token : experts that a token takes
    cast : the logits are cast to fp32 before the softmax (Mixtral), or the weights back to the logits' dtype after it
    normalized : the weights of the chosen experts sum to 1
    """

    def __init__(
        self, features: int, experts: int, per_token: int, *, cast: Literal["before", "after"], normalized: bool = True
    ) -> None:
        super().__init__()
        self.weight = Parameter((experts, features))
        self.per_token, self.cast, self.normalized = per_token, cast, normalized

    def forward(self, hidden_states: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return logits, weights and numbers of the chosen experts."""
        hidden_states = hidden_states.reshape(-1, hidden_states.shape[-1])
        router_logits = F.linear(hidden_states, self.weight)
        if self.cast == "before":
            router_probs = F.softmax(router_logits.float(), -1)
        else:
            router_probs = F.softmax(router_logits, dim=-1, dtype=float32)
        router_top_value, router_indices = F.topk(router_probs, self.per_token, -1)
        if self.normalized:
            router_top_value.div_(router_top_value.sum(dim=-1, keepdim=True))
        if self.cast == "after":
            router_top_value = router_top_value.to(router_logits.dtype)
        return router_logits, router_top_value, router_indices


class Experts(Module):
    """The gated layers of all experts, their weights in two tensors.

    Parameters
    ----------
    transposed : weights have rows of outputs, and each expert has biases (gpt-oss)
    """

    def __init__(
        self,
        features: int,
        inner: int,
        experts: int,
        activation: str,
        options: ConfigOptions,
        *,
        transposed: bool = False,
    ) -> None:
        super().__init__()
        self.options, self.experts, self.transposed = options, experts, transposed
        self.gate_up_proj = Parameter((experts, features, 2 * inner) if transposed else (experts, 2 * inner, features))
        self.gate_up_proj_bias = Parameter((experts, 2 * inner)) if transposed else None
        self.down_proj = Parameter((experts, inner, features) if transposed else (experts, features, inner))
        self.down_proj_bias = Parameter((experts, features)) if transposed else None
        self.act_fn = Activation(activation)

    def forward(self, hidden_states: Tensor, top_k_index: Tensor, top_k_weights: Tensor) -> Tensor:
        """Return the weighted sum of each token's experts."""
        num_top_k = top_k_index.shape[-1]
        num_tokens, hidden_dim = hidden_states.shape
        rows = tokens_by_expert(num_tokens, num_top_k, self.experts, self.options.expert_skew)
        sample_weights = top_k_weights.reshape(-1)
        expert_ids = top_k_index.reshape(-1)
        expert_ids_g, perm = F.sort(expert_ids)
        if self.options.expert_capacity is not None:
            rows = limited(rows, self.options.expert_capacity)
            perm, expert_ids_g = perm[: sum(rows)], expert_ids_g[: sum(rows)]
        selected_hidden_states_g = F.index(hidden_states, F.floor_divide(perm, num_top_k))
        sample_weights_g = F.index(sample_weights, perm)
        histc_input = expert_ids_g.to(int32)
        tokens_per_expert = F.histc(histc_input, self.experts)
        offsets = F.cumsum(tokens_per_expert, 0, int32)
        selected_biases = self._biases(self.gate_up_proj_bias, expert_ids_g)
        proj_out = self._grouped_linear(selected_hidden_states_g, self.gate_up_proj, offsets, rows, selected_biases)
        proj_out = self._gated(proj_out)
        selected_biases = self._biases(self.down_proj_bias, expert_ids_g)
        proj_out = self._grouped_linear(proj_out, self.down_proj, offsets, rows, selected_biases)
        weighted_out = proj_out * sample_weights_g.unsqueeze(-1)
        if self.options.expert_capacity is not None:
            final_hidden_states = F.zeros((num_tokens, hidden_dim), weighted_out.dtype)
            final_hidden_states = F.index_add(final_hidden_states, F.floor_divide(perm, num_top_k), weighted_out)
            return final_hidden_states.to(hidden_states.dtype)
        inv_perm = F.empty_like(perm)
        F.index_put_(inv_perm, perm, F.arange(perm.shape[0]))
        weighted_out = F.index(weighted_out, inv_perm)
        final_hidden_states = weighted_out.view(num_tokens, num_top_k, hidden_dim).sum(dim=1)
        return final_hidden_states.to(hidden_states.dtype)

    @staticmethod
    def _biases(bias: Tensor | None, expert_ids: Tensor) -> Tensor | None:
        return None if bias is None else F.index(bias, expert_ids)

    def _grouped_linear(
        self, x: Tensor, weight: Tensor, offsets: Tensor, rows: list[int], bias: Tensor | None
    ) -> Tensor:
        matrices = weight if self.transposed else weight.transpose(-2, -1)
        result = F.grouped_mm(x.to(weight.dtype), matrices, offsets, rows)
        return result if bias is None else result.add_(bias)

    def _gated(self, gate_up_out: Tensor) -> Tensor:
        gate, up = gate_up_out.chunk(2, dim=-1)
        return self.act_fn(gate) * up


class SparseBlock(Module):
    """A router and its experts.

    Parameters
    ----------
    router_first : the order in which the class makes them, which is that of the parameters
    """

    def __init__(self, router: Router, experts: Experts, *, router_first: bool = True) -> None:
        super().__init__()
        if router_first:
            self.gate = router
        self.experts = experts
        self.gate = router

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Return the layer's output."""
        batch_size, sequence_length, hidden_dim = hidden_states.shape
        hidden_states_reshaped = hidden_states.view(-1, hidden_dim)
        _, routing_weights, selected_experts = self.gate(hidden_states_reshaped)
        final_hidden_states = self.experts(hidden_states_reshaped, selected_experts, routing_weights)
        return final_hidden_states.reshape(batch_size, sequence_length, hidden_dim)


def tokens_by_expert(tokens: int, per_token: int, experts: int, skew: float) -> list[int]:
    """Rows of each expert: as equal as integers are, or by rank to the power of ``-skew`` (Zipf).

    No expert gets more than each token once, so a strong skew fills the first ones.

    Parameters
    ----------
    per_token : experts that a token takes
    """
    counts: list[int] = []
    weights = [rank**-skew for rank in range(1, experts + 1)]
    left, total = tokens * per_token, sum(weights)
    for expert, weight in enumerate(weights):
        fewest = max(0, left - (experts - expert - 1) * tokens)
        count = min(tokens, left, max(fewest, math.ceil(left * weight / total - 1e-9)))
        counts.append(count)
        left -= count
        total -= weight
    return counts


def limited(rows: list[int], capacity: float) -> list[int]:
    """Rows that experts of a capacity take; the others are left out.

    Parameters
    ----------
    capacity : rows that an expert takes at most, relative to a uniform distribution
    """
    most = math.ceil(capacity * sum(rows) / len(rows))
    return [min(count, most) for count in rows]
