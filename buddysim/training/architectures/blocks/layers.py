"""The modules of `torch.nn` that models are made of."""

from __future__ import annotations

from buddysim.training.autograd import functional as F
from buddysim.training.autograd.module import Module, Parameter
from buddysim.training.autograd.tensor import Tensor


class Linear(Module):
    """A product with a weight of shape (outputs, inputs), and a bias.

    Parameters
    ----------
    bias : whether there is one; or another module's, which is then tied
    weight : of another module, which is then tied
    """

    def __init__(
        self, inputs: int, outputs: int, *, bias: bool | Parameter = True, weight: Parameter | None = None
    ) -> None:
        super().__init__()
        self.weight = Parameter((outputs, inputs)) if weight is None else weight
        own = Parameter((outputs,)) if bias is True else None
        self.bias = bias if isinstance(bias, Parameter) else own

    def forward(self, x: Tensor) -> Tensor:
        """Return the product."""
        return F.linear(x, self.weight, self.bias)


class Embedding(Module):
    """Rows of a table, by number.

    Parameters
    ----------
    padding_idx : row whose gradient is left out
    weight : of another module, which is then tied
    """

    def __init__(
        self, rows: int, features: int, *, padding_idx: int | None = None, weight: Parameter | None = None
    ) -> None:
        super().__init__()
        self.weight = Parameter((rows, features)) if weight is None else weight
        self.padding_idx = padding_idx

    def forward(self, numbers: Tensor) -> Tensor:
        """Return the rows."""
        return F.embedding(numbers, self.weight)


class LayerNorm(Module):
    """Normalization over the last dimension."""

    def __init__(self, features: int, *, bias: bool = True, elementwise_affine: bool = True) -> None:
        super().__init__()
        self.shape = (features,)
        self.weight = Parameter(self.shape) if elementwise_affine else None
        self.bias = Parameter(self.shape) if elementwise_affine and bias else None

    def forward(self, x: Tensor) -> Tensor:
        """Return the normalized features."""
        return F.layer_norm(x, self.shape, self.weight, self.bias)


class Dropout(Module):
    """Elements left out by chance; the tensor itself where the probability is 0."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, x: Tensor) -> Tensor:
        """Return what is left, scaled."""
        return F.dropout(x, self.probability)
