"""SwiGLU and GeGLU: two products, the activation of one times the other, a third product."""

from __future__ import annotations

from buddysim.training.architectures.blocks.activations import Activation
from buddysim.training.architectures.blocks.layers import Linear
from buddysim.training.autograd.module import Module
from buddysim.training.autograd.tensor import Tensor


class GatedMLP(Module):
    """The gated layer of Llama, Qwen, Mistral and Gemma."""

    def __init__(self, features: int, inner: int, activation: str, *, bias: bool = False) -> None:
        super().__init__()
        self.gate_proj = Linear(features, inner, bias=bias)
        self.up_proj = Linear(features, inner, bias=bias)
        self.down_proj = Linear(inner, features, bias=bias)
        self.act_fn = Activation(activation)

    def forward(self, x: Tensor) -> Tensor:
        """Return the layer's output."""
        down_proj = self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))
        return down_proj
