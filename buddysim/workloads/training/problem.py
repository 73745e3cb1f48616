"""What a network of the study states."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Problem:
    """A training.

    Attributes
    ----------
    batch : samples of a step
    size : pixels along an edge of an image, or words of a sample
    width : channels, or elements of a state, beside the original's
    steps : of the optimizer
    rate : the learning rate
    seed : of the weights, the order of the data and the dropout
    part : which half of the data: 0 or 1
    seconds : about how much processor time it takes
    """

    batch: int
    size: int
    width: float
    steps: int
    rate: float
    seed: int
    part: int
    seconds: float


@dataclass(frozen=True)
class Network:
    """How a network of the study is trained.

    Attributes
    ----------
    build : makes the module from the problem
    batches : gives batches for ever, inputs and what is right, from the problem
    optimizer : makes the optimizer of parameters and problem
    """

    build: Callable[[Problem], torch.nn.Module]
    batches: Callable[[Problem], Iterator[tuple[torch.Tensor, torch.Tensor]]]
    optimizer: Callable[[Any, Problem], torch.optim.Optimizer]
