"""Fit of what whole iterations alone tell: attention of an older version, and what collectives take from kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from buddysim.training.calibration.search import Bounds, fitted
from buddysim.training.calibration.steps import IterationConstants, StepParts, has_small_heads, step_ms
from buddysim.training.cost.operators.rows import TimedStep


def fit_iterations(steps: Sequence[TimedStep], parts: Sequence[StepParts]) -> IterationConstants:
    """Return the constants for which predictions are nearest to the steps that are for fitting.

    Without steps of small heads their factor is 1: nothing else tells it.
    """
    inside = [(step, part) for step, part in zip(steps, parts, strict=True) if step.fitted]
    gpus = sorted({step.gpu for step, _ in inside})
    free = {"communication": Bounds(0.5, 0.0, 2.0)}
    if any(has_small_heads(step, part) for step, part in inside):
        free["small_heads"] = Bounds(1.0, 0.2, 2.0)
    for name in gpus:
        free |= {f"{name} forward": Bounds(1.5, 0.5, 5.0), f"{name} backward": Bounds(1.5, 0.5, 5.0)}

    def predict(tried: Mapping[str, float]) -> NDArray[np.float64]:
        constants = _constants(tried, gpus)
        return np.array([step_ms(step, part, constants) for step, part in inside])

    fixed = {"small_heads": 1.0}
    return _constants(fitted(predict, np.array([step.ms for step, _ in inside]), free, fixed), gpus)


def _constants(named: Mapping[str, float], gpus: Sequence[str]) -> IterationConstants:
    flash1 = {name: {one: named[f"{name} {one}"] for one in ("forward", "backward")} for name in gpus}
    return IterationConstants(named["communication"], flash1, named["small_heads"])
