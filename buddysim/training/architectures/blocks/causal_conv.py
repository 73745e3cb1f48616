"""A causal convolution of each channel, as layers with a recurrence have it before the recurrence."""

from __future__ import annotations

from buddysim.training.architectures.blocks.activations import Activation
from buddysim.training.autograd import functional as F
from buddysim.training.autograd.module import Module, Parameter
from buddysim.training.autograd.tensor import Tensor


class CausalConv(Module):
    """Weights of `torch.nn.Conv1d` with a kernel for each channel, and an activation function."""

    def __init__(self, channels: int, width: int, activation: str, *, bias: bool) -> None:
        super().__init__()
        self.weight = Parameter((channels, 1, width))
        self.bias = Parameter((channels,)) if bias else None
        self.act = Activation(activation)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Return the activations, of shape (batch, channels, tokens), from the same shape."""
        tokens, weight = hidden_states.shape[2], self.weight.squeeze(1)
        cast = hidden_states.to(weight.dtype)
        out = F.conv1d(cast, weight.unsqueeze(1), self.bias, weight.shape[-1] - 1)[:, :, :tokens]
        del cast
        out = self.act(out)
        return out.to(hidden_states.dtype)
