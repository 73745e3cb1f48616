"""Takes part in a recorded step: blocks that are recomputed, hooks that offload what is saved."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from buddysim.training.autograd.blocks import blocks_of
from buddysim.training.autograd.offload import OffloadedTensors
from buddysim.training.autograd.saved_hooks import saving_with
from buddysim.training.saving.checkpointed_blocks import checkpoint_blocks
from buddysim.training.step.part import StepPart

if TYPE_CHECKING:
    from buddysim.training.saving.rules import SavingRules
    from buddysim.training.step.training_step import TrainingStep


class SavingPart(StepPart):
    """Rules at work in a step."""

    def __init__(self, rules: SavingRules) -> None:
        self.rules = rules

    def model_built(self, step: TrainingStep) -> None:
        checkpoint_blocks([block for _, block in blocks_of(step.model)], self.rules.checkpoints)

    def forward(self, step: TrainingStep) -> AbstractContextManager[object]:
        offload = self.rules.offload
        if offload is None:
            return nullcontext()
        selects = offload.selector([path for path, _ in blocks_of(step.model)])
        return saving_with(step.tape, OffloadedTensors(step.tape, offload.settings, selects))
