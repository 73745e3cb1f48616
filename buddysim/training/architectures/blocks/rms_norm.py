"""RMSNorm as transformers writes it: computed in fp32, so that a 4-byte copy of the input is saved next to the result.

Five spellings save five different sets of tensors; each is a class.
"""

from __future__ import annotations

from buddysim.training.autograd.dtypes import bfloat16, float16, float32
from buddysim.training.autograd.module import Module, Parameter
from buddysim.training.autograd.tensor import Tensor


class RMSNorm(Module):
    """The norm of Llama and most others: the result is cast back, then multiplied by the weight."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.weight = Parameter((features,))

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Return the normalized features, in the dtype of the input."""
        input_dtype = hidden_states.dtype
        hidden_states = hidden_states.to(float32)
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        hidden_states = hidden_states * (variance + 1e-6).rsqrt()
        return self.weight * hidden_states.to(input_dtype)


class LateCastRMSNorm(RMSNorm):
    """That of OLMo 2 and gpt-oss: multiplied by the weight in fp32, then cast back."""

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Return the normalized features, in the dtype of the input."""
        input_dtype = hidden_states.dtype
        hidden_states = hidden_states.to(float32)
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        hidden_states = hidden_states * (variance + 1e-6).rsqrt()
        return (self.weight * hidden_states).to(input_dtype)


class L2Norm(Module):
    """Normalization without a weight."""

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Return the normalized features, in the dtype of the input."""
        return self._norm(hidden_states.float()).type_as(hidden_states)

    def _norm(self, hidden_states: Tensor) -> Tensor:
        return hidden_states * (hidden_states.pow(2).mean(-1, keepdim=True) + 1e-6).rsqrt()


class OutputRMSNorm(L2Norm):
    """Llama 4's: the result is cast back, and is the first factor of the product with the weight."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.weight = Parameter((features,))

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Return the normalized features, in the dtype of the input."""
        output = super().forward(hidden_states)
        return output * self.weight


class GemmaRMSNorm(L2Norm):
    """Gemma's: multiplied by 1 + weight in fp32, then cast back."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.weight = Parameter((features,))

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Return the normalized features, in the dtype of the input."""
        output = self._norm(hidden_states.float())
        output = output * (1.0 + self.weight.float())
        return output.type_as(hidden_states)


class T5LayerNorm(Module):
    """T5's: the variance in fp32, the input itself multiplied in its own dtype by an fp32 factor."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.weight = Parameter((features,))

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Return the normalized features: fp32 where the weight is, else in the weight's dtype."""
        variance = hidden_states.to(float32).pow(2).mean(-1, keepdim=True)
        hidden_states = hidden_states * (variance + 1e-6).rsqrt()
        if self.weight.dtype in (float16, bfloat16):
            hidden_states = hidden_states.to(self.weight.dtype)
        return self.weight * hidden_states
