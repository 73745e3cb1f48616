"""Adapters as a part of a training step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.training.adapters.apply import adapt
from buddysim.training.options.adapter_options import LoraRequest
from buddysim.training.step.part import StepPart

if TYPE_CHECKING:
    from buddysim.training.options.config_options import ConfigOptions
    from buddysim.training.recipes import Recipe
    from buddysim.training.step.training_step import TrainingStep


class Adapters(StepPart):
    """Adapters alone are trained."""

    def __init__(self, request: LoraRequest) -> None:
        self.request = request

    def model_built(self, step: TrainingStep) -> None:
        adapt(step.model, step.config.architecture.model_type, self.request, fused=step.options.compile)


def adapters(options: ConfigOptions, recipe: Recipe) -> Adapters | None:
    """Return the part of a model with adapters.

    Raises
    ------
    BuddysimError
        an optimizer in the backward pass, for which frozen weights leave next to nothing
    """
    request = options.adapters
    if request is not None and options.optimizer_in_backward:
        raise BuddysimError("lora: frozen weights have no gradients: expected no optimizer_in_backward")
    return None if request is None else Adapters(request)
