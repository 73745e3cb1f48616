"""Layers of the study's image classifiers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import nn

from buddysim.workloads.training.problem import TrainingProblem


def width_of(problem: TrainingProblem) -> Callable[[int], int]:
    """Return a fraction of the original number of channels: a multiple of 4, at least 8."""
    return lambda channels: max(8, round(channels * problem.width / 4) * 4)


def unit(inputs: int, outputs: int, size: int | tuple[int, int], stride: int = 1) -> nn.Sequential:
    """Return a convolution with "same" padding, batch normalisation and ReLU in place."""
    convolution = nn.Conv2d(inputs, outputs, size, stride, size // 2 if isinstance(size, int) else 0, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))


def plain_unit(inputs: int, outputs: int, size: int, stride: int = 1) -> nn.Sequential:
    """Return a convolution with bias and "same" padding, and ReLU in place; weights as in He et al. 2015."""
    convolution = nn.Conv2d(inputs, outputs, size, stride, size // 2)
    nn.init.kaiming_uniform_(convolution.weight)
    nn.init.zeros_(convolution.bias)
    return nn.Sequential(convolution, nn.ReLU(inplace=True))


class Branches(nn.Module):  # type: ignore[misc]
    """Parallel modules, whose channels are concatenated."""

    def __init__(self, branches: Sequence[nn.Module]) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([branch(x) for branch in self.branches], 1)
