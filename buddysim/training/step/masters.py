"""Masters: the optimizer updates fp32 copies of the weights, as Megatron-LM's mixed-precision optimizer has them.

(``megatron/core/optimizer/optimizer.py``, `Float16OptimizerWithFloat16Params`.) Before an update each gradient is
copied to fp32 and then dropped; behind it the weights are copied from the masters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from buddysim.training.autograd.dtypes import float32
from buddysim.training.autograd.module import Parameter
from buddysim.training.autograd.operators import copies
from buddysim.training.step.part import StepPart

if TYPE_CHECKING:
    from buddysim.training.options.config_options import ConfigOptions
    from buddysim.training.recipes import Recipe
    from buddysim.training.step.training_step import TrainingStep


class Masters(StepPart):
    """Weights in fp32 next to those that the model computes with; weights that are in fp32 have none."""

    def __init__(self) -> None:
        self.pairs: list[tuple[Parameter, Parameter]] = []

    def optimized(self, step: TrainingStep, parameters: Sequence[Parameter]) -> Sequence[Parameter]:
        """Return the masters."""
        updated = []
        for weight in parameters:
            if weight.dtype is float32:
                updated.append(weight)
                continue
            master = Parameter(weight.shape, float32)
            master.storage.record.kind, master.storage.record.label = "master", weight.storage.record.label
            self.pairs.append((weight, master))
            updated.append(master)
        return updated

    @contextmanager
    def update(self, step: TrainingStep) -> Iterator[None]:
        """Copy gradients before an update, and weights behind it."""
        with step.tape.no_grad():
            for weight, master in self.pairs:
                if weight.grad is not None:
                    master.grad = copies.to(weight.grad, float32)
                    master.grad.storage.record.kind = "gradient"
                    weight.grad = None
        yield
        updated = [pair for pair in self.pairs if pair[1].grad is not None]
        if updated:
            weights = [weight for weight, _ in updated]
            step.tape.launch("_foreach_copy_", [master for _, master in updated], weights)

    def zero_grad(self, step: TrainingStep) -> None:
        for _, master in self.pairs:
            master.grad = None


def masters(options: ConfigOptions, recipe: Recipe) -> Masters | None:
    """Return the part of a recipe with masters."""
    return Masters() if recipe.masters else None
