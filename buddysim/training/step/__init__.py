"""A training step of a model, recorded: all that runs one is here, and so is what options may add to it."""

from buddysim.training.step.part import StepPart
from buddysim.training.step.run import record_step
from buddysim.training.step.training_step import TrainingStep

__all__ = ["StepPart", "TrainingStep", "record_step"]
