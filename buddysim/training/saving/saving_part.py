"""Takes part in a recorded step: blocks that are recomputed, hooks that offload what is saved, and the host's work."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.training.autograd.blocks import blocks_of
from buddysim.training.autograd.compressed import CompressedTensors
from buddysim.training.autograd.offload import OffloadedTensors
from buddysim.training.autograd.saved_hooks import FirstThatSelects, SavedTensorHooks, saving_with
from buddysim.training.host.host_optimizer import HostOptimizer
from buddysim.training.host.host_weights import HostWeights
from buddysim.training.options.block_range import selector
from buddysim.training.options.optimizer_offload import OptimizerOffload
from buddysim.training.saving.checkpointed_blocks import checkpoint_blocks
from buddysim.training.step.masters import Masters
from buddysim.training.step.part import StepPart

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from buddysim.training.options.saving_rules import SavingRules
    from buddysim.training.recipes import Recipe
    from buddysim.training.step.training_step import TrainingStep


class SavingPart(StepPart):
    """Rules at work in a step."""

    def __init__(self, rules: SavingRules) -> None:
        self.rules = rules

    def model_built(self, step: TrainingStep) -> None:
        checkpoint_blocks([block for _, block in blocks_of(step.model)], self.rules.checkpoints)

    def forward(self, step: TrainingStep) -> AbstractContextManager[object]:
        tape, offload, compression = step.tape, self.rules.offload, self.rules.compression
        blocks = [path for path, _ in blocks_of(step.model)]
        hooks: list[tuple[Callable[[str], bool], SavedTensorHooks]] = []
        if compression is not None:
            hooks.append((selector(compression.ranges, blocks), CompressedTensors(tape, compression.bits)))
        if offload is not None:
            selects = selector(offload.ranges, blocks, offload.outputs)
            hooks.append((selects, OffloadedTensors(tape, offload.settings, selects)))
        return saving_with(tape, FirstThatSelects(tape, hooks)) if hooks else nullcontext()


def with_saving(parts: Sequence[StepPart], recipe: Recipe, rules: SavingRules) -> list[StepPart]:
    """Return the parts of a step with those of rules; masters are the host's where it updates the weights.

    Raises
    ------
    BuddysimError
        a recipe whose scaler needs all gradients on the GPU
    """
    made: list[StepPart] = list(parts)
    optimizer, weights = rules.optimizer, rules.weights
    if optimizer is not None or weights is not None:
        if recipe.scaler:
            raise BuddysimError(f"recipe {recipe.name}: a scaler needs gradients on the GPU: expected bf16 or fp32")
        made = [one for one in made if not isinstance(one, Masters)]
        made += [] if weights is None else [HostWeights(weights)]
        made.append(HostOptimizer(optimizer or OptimizerOffload(), recipe.masters, back=weights is None))
    return [*made, SavingPart(rules)]
