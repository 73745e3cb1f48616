"""Accumulation of gradients: each micro-step's loss is divided, so that the sum is a mean over all samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.training.step.part import StepPart

if TYPE_CHECKING:
    from buddysim.training.autograd.tensor import Tensor
    from buddysim.training.networks.config_options import ConfigOptions
    from buddysim.training.recipes import Recipe
    from buddysim.training.step.training_step import TrainingStep


class Accumulation(StepPart):
    """``(loss / N).backward()`` in each of N micro-steps."""

    def loss(self, step: TrainingStep, loss: Tensor) -> Tensor:
        return loss / step.micro_steps


def accumulation(options: ConfigOptions, recipe: Recipe) -> Accumulation | None:
    """Return the part of more than one micro-step."""
    return Accumulation() if options.accumulation > 1 else None
