"""Activation functions by the names that configurations have (transformers, `activations.ACT2FN`)."""

from __future__ import annotations

import math
from collections.abc import Callable

from buddysim.training.autograd import functional as F
from buddysim.training.autograd.module import Module
from buddysim.training.autograd.tensor import Tensor


class Activation(Module):
    """An activation function, a module of its own in transformers too."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.function = FUNCTIONS[name]

    def forward(self, x: Tensor) -> Tensor:
        """Return the function's values."""
        return self.function(x)


def _gelu_new(x: Tensor) -> Tensor:
    return 0.5 * x * (1.0 + F.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x.pow(3.0))))


def _gelu_fast(x: Tensor) -> Tensor:
    return 0.5 * x * (1.0 + F.tanh(x * 0.7978845608 * (1.0 + 0.044715 * x * x)))


def _gelu_python(x: Tensor) -> Tensor:
    return x * 0.5 * (1.0 + F.erf(x / math.sqrt(2.0)))


def _quick_gelu(x: Tensor) -> Tensor:
    return x * F.sigmoid(1.702 * x)


def _relu_squared(x: Tensor) -> Tensor:
    relu_applied = F.relu(x)
    squared = F.square(relu_applied)
    return squared


FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": lambda x: F.gelu(x),
    "gelu_fast": _gelu_fast,
    "gelu_new": _gelu_new,
    "gelu_python": _gelu_python,
    "gelu_pytorch_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "linear": lambda x: x,
    "quick_gelu": _quick_gelu,
    "relu": lambda x: F.relu(x),
    "relu2": _relu_squared,
    "sigmoid": lambda x: F.sigmoid(x),
    "silu": lambda x: F.silu(x),
    "swish": lambda x: F.silu(x),
    "tanh": lambda x: F.tanh(x),
}
