"""A recipe: the number formats of a training step, and what follows from them."""

from __future__ import annotations

from dataclasses import dataclass

from buddysim.base.errors import BuddysimError
from buddysim.training.autograd.dtypes import DType, float16


@dataclass(frozen=True)
class Recipe:
    """Number formats of a training step.

    Attributes
    ----------
    summary : one line for lists
    weights : format of weights, and of the gradients that autograd leaves
    precision : of matrix products, a name of `cost.precision.PRECISIONS`
    autocast : format that autocast brings inputs of products to; None: no autocast
    masters : whether the optimizer updates fp32 copies of the weights
    scaler : whether the loss is scaled so that gradients don't underflow

    Raises
    ------
    BuddysimError
        gradients in fp16 without a scaler, which underflow; weights in fp16, whose gradients no scaler takes
    """

    name: str
    summary: str
    weights: DType
    precision: str
    autocast: DType | None = None
    masters: bool = False
    scaler: bool = False

    def __post_init__(self) -> None:
        if float16 in (self.weights, self.autocast) and not self.scaler:
            raise BuddysimError(f"recipe {self.name}: fp16 without a gradient scaler underflows: expected amp-fp16")
        if self.weights is float16 and not self.masters:
            raise BuddysimError(f"recipe {self.name}: a scaler takes no fp16 gradients of weights: expected amp-fp16")
