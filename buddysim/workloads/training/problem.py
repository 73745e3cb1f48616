"""What a network of the study states."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class TrainingProblem:
    """A training.

    Attributes
    ----------
    batch : samples of a step
    size : pixels along an edge of an image, or words of a sample
    width : channels, or elements of a state, in place of the original's
    steps : of the optimizer
    rate : the learning rate
    seed : of the weights, the order of the data and the dropout
    part : which half of the data: 0 or 1
    seconds : about how much processor time it takes; at the original's size without writing its kernels
    contents : a smaller training of the same network, which is computed instead: what memory holds is of that one,
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
    """Trainings of the original's widths and sizes, whose contents are those of these.

    Buddy Compression doesn't state its batches: each is the power of two whose pool is nearest to the footprint in its
    Table 1.
    """
    return {
        which: replace(problem, batch=batch, size=size, width=1.0, contents=problem)
        for which, problem in problems.items()
    }


@dataclass(frozen=True)
class StudyNetwork:
    """How a network of the study is trained.

    Attributes
    ----------
    build : makes the module from the problem
    batches : gives batches for ever, inputs and what is right, from the problem
    optimizer : makes the optimizer of parameters and problem
    """

    build: Callable[[TrainingProblem], torch.nn.Module]
    batches: Callable[[TrainingProblem], Iterator[tuple[torch.Tensor, torch.Tensor]]]
    optimizer: Callable[[Any, TrainingProblem], torch.optim.Optimizer]
