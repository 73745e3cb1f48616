"""The optimizers of the study's networks. torch is imported when one is made: networks are listed without it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.workloads.training.problem import TrainingProblem

if TYPE_CHECKING:
    import torch


def momentum(parameters: Any, problem: TrainingProblem) -> torch.optim.Optimizer:
    """Stochastic gradient descent as the original trainings': momentum 0.9; all parameters in one kernel."""
    from torch.optim import SGD

    return SGD(parameters, problem.rate, momentum=0.9, weight_decay=2e-4, fused=True)


def adam(parameters: Any, problem: TrainingProblem) -> torch.optim.Optimizer:
    """Adam, where the original's optimizer doesn't halve the loss in so few steps; all parameters in one kernel."""
    from torch.optim import Adam

    return Adam(parameters, problem.rate, fused=True)
