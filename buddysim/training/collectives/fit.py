"""Fits the constants of collectives over each kind of link to the fitted rows of `split`.

Least squares over the logarithm of predicted by measured time, with a weak pull towards usual values, so that a
constant that no row depends on stays there. Deterministic: starts from those values alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log

import numpy as np
from scipy.optimize import least_squares

from buddysim.training.collectives.constants import LinkConstants, ProtocolConstants, SwitchConstants
from buddysim.training.collectives.measured import MeasuredCollective, measured_collectives
from buddysim.training.collectives.split import FITTED, is_fitted
from buddysim.training.collectives.times import collective_us

#: Weight of a constant's distance from its usual value, as natural logarithms, among the residuals.
_PULL = 0.05

#: A constant differs from its usual value by at most this factor.
_FARTHEST = 6.0

#: From how many GPUs on a switch reduces; the A100's does not, and two GPUs exchange their halves.
_MIN_GPUS = {"nvlink4": 8, "nvlink5": 4}


def fitted_links() -> dict[str, LinkConstants]:
    """Return the constants of each link, fitted now."""
    return {link: _fit(link, [row for row in measured_collectives() if _of(row, link)]) for link in FITTED}


def _of(row: MeasuredCollective, link: str) -> bool:
    return is_fitted(row) and (row.gpu, row.version) == FITTED[link]


def _fit(link: str, rows: Sequence[MeasuredCollective]) -> LinkConstants:
    largest = max(rows, key=lambda row: (row.kind == "all_gather", row.bytes, row.gpus))
    rate = largest.bytes * (largest.gpus - 1) / largest.gpus / largest.us / 1e3
    usual = [5.0, 1.0, rate / 6, 7.0, 1.2, rate / 2, 12.0, 2.0, rate, 3 * rate]
    if link in _MIN_GPUS:
        usual += [25.0, rate * 0.7]
    start = np.log(np.array(usual))

    def residuals(logs: np.ndarray) -> list[float]:
        constants = _constants(link, logs)
        errors = [log(collective_us(constants, row.kind, row.bytes, row.gpus) / row.us) for row in rows]
        return [*errors, *(_PULL * (logs - start))]

    around = log(_FARTHEST)
    best = least_squares(
        residuals, start, bounds=(start - around, start + around), loss="soft_l1", f_scale=0.1, max_nfev=400
    )
    return _constants(link, best.x)


def _constants(link: str, logs: Sequence[float] | np.ndarray) -> LinkConstants:
    values = [exp(one) for one in logs]
    switch = SwitchConstants(values[10], values[11], _MIN_GPUS[link]) if link in _MIN_GPUS else None
    gpu, version = FITTED[link]
    source = f"fitted to {gpu} with NCCL {version} (ai-dynamo/aiconfigurator, Apache-2.0), every second size"
    shared = link.endswith("through-host")
    if shared:
        source += ", two GPUs; more share the host's rate (assumed)"
    small, medium, large = (ProtocolConstants(*values[first : first + 3]) for first in (0, 3, 6))
    return LinkConstants(small, medium, large, values[9], switch, shared, source)
