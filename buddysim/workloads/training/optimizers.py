"""Optimizers of the study's networks. They import torch only when called, so that networks are listed without it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.workloads.training.problem import TrainingProblem

if TYPE_CHECKING:
    import torch


def momentum(parameters: Any, problem: TrainingProblem) -> torch.optim.Optimizer:
    """Return stochastic gradient descent with momentum 0.9, as in the original trainings; one kernel for all."""
    from torch.optim import SGD

    return SGD(parameters, problem.rate, momentum=0.9, weight_decay=2e-4, fused=True)


def adam(parameters: Any, problem: TrainingProblem) -> torch.optim.Optimizer:
    """Return Adam, for networks whose original optimizer doesn't halve the loss in so few steps; one kernel for all."""
    from torch.optim import Adam

    return Adam(parameters, problem.rate, fused=True)
