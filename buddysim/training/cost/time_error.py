"""Errors of predicted times, by kind of prediction: measured on steps and networks that no constant was fitted to.

Written by `python tools/operator_errors.py` (docs/validation/operators.md has the rows). A kind is what was simulated
(a recorded model or described layers), the number format of its products, and whether the GPU's own timings are behind
the constants or a neighbour's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from buddysim.base.textfile import parse_toml
from buddysim.training.networks.recorded.network import RecordedNetwork

if TYPE_CHECKING:
    from buddysim.training.cost.model import CostModel
    from buddysim.training.networks.graph import Network

_DATA = resources.files("buddysim.training.cost") / "data" / "iterations" / "errors.toml"


@dataclass(frozen=True)
class TimeError:
    """Error of one kind of prediction.

    Attributes
    ----------
    rows : measured times that were compared
    median : of |predicted / measured - 1|
    low, high : measured over predicted time: quantiles of 5 and 95 % of the rows
    predicted_from : GPU whose timings are behind the constants; empty: the GPU's own
    """

    rows: int
    median: float
    low: float
    high: float
    predicted_from: str = ""

    @property
    def text(self) -> str:
        """Return the sentence that a screen shows."""
        source = f"predicted from {self.predicted_from}; such predictions" if self.predicted_from else "such times"
        low, high = (f"{100 * (bound - 1):+.0f}" for bound in (self.low, self.high))
        return f"{source} are off by {100 * self.median:.0f} % (median), measured {low} to {high} %"


@cache
def _kinds() -> dict[str, dict[str, float]]:
    kinds: dict[str, dict[str, float]] = parse_toml(_DATA.read_text(encoding="utf-8"))
    return kinds


def kind_of(network: Network, cost: CostModel) -> tuple[str, str]:
    """Return the kind of a prediction, and the GPU that it is predicted from (empty: itself)."""
    number_format = "fp32" if cost.precision.name == "fp32" else "half"
    if isinstance(network, RecordedNetwork):
        origin = cost.operators.origin(cost.precision.name)
        if origin != cost.machine.name:
            return "recorded-neighbour", origin
        return f"recorded-{number_format}-own", ""
    calibration = cost.calibration
    own = calibration is not None and not cost.borrowed
    others = "other GPUs" if calibration is None else calibration.machine
    return f"layers-{number_format}-{'own' if own else 'neighbour'}", "" if own else others


def time_error(network: Network, cost: CostModel) -> TimeError:
    """Return the error of the times of a network with a cost model."""
    kind, predicted_from = kind_of(network, cost)
    bounds = _kinds()[kind]
    return TimeError(int(bounds["rows"]), bounds["median"], bounds["low"], bounds["high"], predicted_from)
