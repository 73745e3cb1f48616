"""Linear layers whose frozen weight is quantised: 16 bits again in each pass, for the time of one product."""

from __future__ import annotations

from buddysim.training.autograd.layout import Shape
from buddysim.training.autograd.module import Module, Parameter
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.quantized.nf4 import QuantizedWeight


class QuantizedLinear(Module):
    """A product with a quantised weight of shape (outputs, inputs), and a bias.

    Parameters
    ----------
    weight : quantised
    bias : added to the product, or None
    """

    def __init__(self, weight: QuantizedWeight, bias: Parameter | None) -> None:
        super().__init__()
        self.shape: Shape = weight.shape
        self.weight = weight
        self.bias = bias

    def forward(self, x: Tensor) -> Tensor:
        """Return the product."""
        return self.weight.product(x, self.bias)
