"""The optimizer in backward: each weight is updated as soon as its gradient is there, and the gradient dropped.

As PyTorch's tutorial "How to save memory by fusing an optimizer step into the backward pass" and torchtune write it: an
optimizer for each weight, run by ``register_post_accumulate_grad_hook``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.optimizers.traced import TracedOptimizer
from buddysim.training.step.gradient_hooks import GradientHooks
from buddysim.training.step.part import StepPart

if TYPE_CHECKING:
    from buddysim.training.options.config_options import ConfigOptions
    from buddysim.training.recipes import Recipe
    from buddysim.training.step.training_step import TrainingStep


class OptimizerInBackward(StepPart):
    """An optimizer of each weight, in a hook."""

    def optimizer_made(self, step: TrainingStep) -> None:
        """Give each weight its own optimizer.

        Raises
        ------
        BuddysimError
            no optimizer
        """
        if step.optimizer.optimizer is None:
            raise BuddysimError("optimizer_in_backward: no optimizer runs: expected one (--optimizer)")
        hooks = GradientHooks(step)
        for one in step.optimizer.parameters:
            own = TracedOptimizer(step.optimizer.optimizer, step.optimizer.variant, [one])
            if step.steady:
                own.make_state()
            hooks.add(one, _Hook(own))
        step.optimizer = TracedOptimizer(None, "", ())


class _Hook:
    def __init__(self, optimizer: TracedOptimizer) -> None:
        self.optimizer = optimizer

    def __call__(self, weight: Tensor) -> None:
        self.optimizer.step()
        weight.grad = None


def in_backward(options: ConfigOptions, recipe: Recipe) -> OptimizerInBackward | None:
    """Return the part of the option.

    Raises
    ------
    BuddysimError
        gradients that aren't complete when a weight's hook runs
    """
    if not options.optimizer_in_backward:
        return None
    if options.accumulation > 1:
        raise BuddysimError(
            f"accumulation {options.accumulation}: optimizer_in_backward drops gradients at once: expected 1"
        )
    if recipe.scaler:
        raise BuddysimError(f"recipe {recipe.name}: a scaler needs all gradients: expected no optimizer_in_backward")
    if recipe.masters:
        raise BuddysimError(f"recipe {recipe.name}: masters need all gradients: expected no optimizer_in_backward")
    return OptimizerInBackward()
