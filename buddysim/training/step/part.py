"""What an option adds to a training step: adapters, sharding, checkpoints, a gradient scaler."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from buddysim.training.autograd.module import Parameter
    from buddysim.training.autograd.tensor import Tensor
    from buddysim.training.step.training_step import TrainingStep


class StepPart:
    """Takes part in a step by the methods that it overrides.

    Contexts of several parts lie in each other: that of the first part is the outermost.
    """

    def model_built(self, step: TrainingStep) -> None:
        """Change ``step.model`` before anything else is made: replace modules, freeze or shard weights, add hooks."""

    def optimized(self, step: TrainingStep, parameters: Sequence[Parameter]) -> Sequence[Parameter]:
        """Return the tensors that the optimizer updates, instead of `parameters`: masters, shards."""
        return parameters

    def optimizer_made(self, step: TrainingStep) -> None:
        """Act once the optimizer is there, still before the first forward pass: hooks of gradients."""

    def forward(self, step: TrainingStep) -> AbstractContextManager[object]:
        """Return what is around the forward pass of a micro-step."""
        return nullcontext()

    def loss(self, step: TrainingStep, loss: Tensor) -> Tensor:
        """Return the number whose gradients are computed, instead of the loss."""
        return loss

    def backward(self, step: TrainingStep) -> AbstractContextManager[object]:
        """Return what is around the backward pass of a micro-step."""
        return nullcontext()

    def update(self, step: TrainingStep) -> AbstractContextManager[object]:
        """Return what is around the optimizer's step."""
        return nullcontext()

    def zero_grad(self, step: TrainingStep) -> None:
        """Drop gradients that aren't those of the model's parameters."""
