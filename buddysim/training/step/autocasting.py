"""Autocast around the forward pass, with its cache of cast weights."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from buddysim.training.autograd import Autocast
from buddysim.training.autograd.dtypes import DType
from buddysim.training.step.part import StepPart

if TYPE_CHECKING:
    from buddysim.training.options.config_options import ConfigOptions
    from buddysim.training.recipes import Recipe
    from buddysim.training.step.training_step import TrainingStep


class Autocasting(StepPart):
    """``with torch.autocast("cuda", dtype):`` around the forward pass of each micro-step."""

    def __init__(self, dtype: DType) -> None:
        self.dtype = dtype

    def forward(self, step: TrainingStep) -> AbstractContextManager[object]:
        return Autocast(step.tape, self.dtype)


def autocasting(options: ConfigOptions, recipe: Recipe) -> Autocasting | None:
    """Return the part of a recipe with autocast."""
    return None if recipe.autocast is None else Autocasting(recipe.autocast)
