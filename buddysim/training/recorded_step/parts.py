"""The parts of a step that options choose, in the order in which they act."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from buddysim.training.adapters.part import adapters
from buddysim.training.sharding.part import sharding
from buddysim.training.step.autocasting import autocasting
from buddysim.training.step.in_backward import in_backward
from buddysim.training.step.masters import masters
from buddysim.training.step.scaling import scaling

if TYPE_CHECKING:
    from buddysim.training.options.config_options import ConfigOptions
    from buddysim.training.recipes import Recipe
    from buddysim.training.step.part import StepPart

#: Each returns its part, or None where the options don't ask for it. The first part's contexts are the outermost.
PARTS: tuple[Callable[[ConfigOptions, Recipe], StepPart | None], ...] = (
    adapters,
    sharding,
    autocasting,
    masters,
    scaling,
    in_backward,
)


def parts_of(options: ConfigOptions, recipe: Recipe) -> Sequence[StepPart]:
    """Return the parts that options and number formats ask for."""
    return [part for make in PARTS if (part := make(options, recipe)) is not None]
