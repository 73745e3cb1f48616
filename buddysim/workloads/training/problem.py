"""Descriptions of the study's networks and of their trainings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class TrainingProblem:
    """Parameters of a training.

    Attributes
    ----------
    batch : samples of a step
    size : pixels along an edge of an image, or words of a sample
    width : channels, or elements of a state, in place of the original's
    steps : of the optimizer
    rate : the learning rate
    seed : of the weights, the order of the data and the dropout
    part : which half of the data: 0 or 1
    seconds : approximate processor time; at the original's size, without the writing of its kernels
    contents : a smaller training of the same network that is computed instead; it provides the contents of memory,
        repeated by layer; None: this training is computed
    """

    batch: int
    size: int
    width: float
    steps: int
    rate: float
    seed: int
    part: int
    seconds: float
    contents: TrainingProblem | None = None

    @property
    def computed(self) -> TrainingProblem:
        """The training that is computed."""
        return self.contents or self


def of_paper(problems: Mapping[str, TrainingProblem], batch: int, size: int = 224) -> dict[str, TrainingProblem]:
    """Return trainings of the original's widths and sizes, with contents of the given smaller ones.

    The paper doesn't state its batches: each is the power of two whose pool is nearest to the footprint in Table 1.
    """
    return {
        which: replace(problem, batch=batch, size=size, width=1.0, contents=problem)
        for which, problem in problems.items()
    }


@dataclass(frozen=True)
class StudyNetwork:
    """A network of the study and its training.

    Attributes
    ----------
    build : makes the module from the problem
    batches : yields batches without end, inputs and targets, from the problem
    optimizer : makes the optimizer of parameters and problem
    """

    build: Callable[[TrainingProblem], torch.nn.Module]
    batches: Callable[[TrainingProblem], Iterator[tuple[torch.Tensor, torch.Tensor]]]
    optimizer: Callable[[Any, TrainingProblem], torch.optim.Optimizer]
