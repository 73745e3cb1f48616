"""Records training steps of a model that a configuration describes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.training.autograd import Tape
from buddysim.training.autograd.compiled import compiled
from buddysim.training.recorded_step.parts import parts_of
from buddysim.training.saving.saving_part import with_saving
from buddysim.training.step.training_step import TrainingStep

if TYPE_CHECKING:
    from buddysim.training.architectures.read_config import ReadConfig
    from buddysim.training.options.config_options import ConfigOptions
    from buddysim.training.options.saving_rules import SavingRules
    from buddysim.training.recipes import Recipe


def record_step(
    config: ReadConfig,
    options: ConfigOptions,
    recipe: Recipe,
    batch: int,
    optimizer: str = "none",
    iterations: int = 1,
    steady: bool = True,
    saving: SavingRules | None = None,
) -> Tape:
    """Return the record of training iterations: model, optimizer and inputs in phase setup, then the iterations.

    Parameters
    ----------
    options : what the configuration leaves open; their fields choose the parts of the step (`parts.parts_of`)
    recipe : number formats
    batch : samples of a micro-step
    optimizer : name of an optimizer
    steady : whether the optimizer's state is there before the first iteration; else its first update makes it
    saving : what is done with what autograd saves; None: it stays

    Raises
    ------
    BuddysimError
        options that contradict the model or each other
    """
    parts = (
        list(parts_of(options, recipe)) if saving is None else with_saving(parts_of(options, recipe), recipe, saving)
    )
    with Tape(recipe.weights) as tape:
        step = TrainingStep(tape, config, options, parts, batch, optimizer, steady)
        with step.model.recording():
            for _ in range(iterations):
                step.run()
    return compiled(tape, step.model.compiled_region) if options.compile else tape
