"""Errors of modelled layer times against measured ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from buddysim.training.cost.dataset import passes_of
from buddysim.training.cost.model import CostModel
from buddysim.training.cost.timings import MeasuredPass
from buddysim.training.cost.traffic import unweighted_bytes
from buddysim.training.cost.work import Pass


def predicted_ms(model: CostModel, timing: MeasuredPass) -> float:
    """Return the modelled time of a measured pass, in milliseconds."""
    passes = passes_of(timing)
    if timing.kind == "conv":
        algorithm = "implicit_precomp_gemm" if model.calibration and model.calibration.limited_workspace else None
        return sum(_conv_ps(model, timing, pass_, algorithm) for pass_ in passes) / 1e9
    if timing.kind == "fc":
        return sum(model.product_ps(timing.product.of_pass(pass_), pass_) for pass_ in passes) / 1e9
    pass_name = "forward" if timing.pass_ == "forward" else "backward"
    return model.moving_ps(unweighted_bytes(timing), timing.kind, pass_name) / 1e9


def _conv_ps(model: CostModel, timing: MeasuredPass, pass_: Pass, algorithm: str | None) -> int:
    """Return the time of the named algorithm in picoseconds; None: of the fastest one."""
    return next(one.time_ps for one in model.algorithms(timing.work, pass_) if algorithm in (None, one.name))


def errors(model: CostModel, timings: Iterable[MeasuredPass]) -> list[float]:
    """Return the relative errors: predicted / measured - 1."""
    return [predicted_ms(model, timing) / timing.ms - 1 for timing in timings]


def median_error(errors: Sequence[float]) -> float:
    """Return the median of the absolute relative errors."""
    return median(abs(error) for error in errors)
