"""Errors of predicted times, by kind of prediction: measured on steps and networks that no constant was fitted to.

Written by `python -m tools.operator_errors` (docs/validation/operators.md has the rows). A kind is what was simulated
(a recorded model or described layers), the number format of its products, and whether timings of the GPU's chip are
behind the constants or a neighbour's. Described layers on tensor cores are one kind: nobody timed their CONV there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from buddysim.base.textfile import parse_toml
from buddysim.training.cost.operators.model import same_chip
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
    low, high : measured over predicted time: `ranges.range_of` the rows
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
    number_format = cost.precision.name
    recorded = isinstance(network, RecordedNetwork)
    if recorded or cost.described is not None:
        origin = cost.operators.origin(number_format)
        predicted_from = "" if origin == cost.machine.name else origin
        if not recorded:
            return _described(network), predicted_from
        basis = "own" if same_chip(origin, cost.machine.name) else "neighbour"
        return f"recorded-{'fp32' if number_format == 'fp32' else 'half'}-{basis}", predicted_from
    kind = _described(network)
    calibration = cost.calibration
    own = basis_of_layers(cost) != "neighbour"
    others = "other GPUs" if calibration is None else calibration.machine
    if kind == "layers-half":
        kind = f"layers-fp32-{basis_of_layers(cost)}"
    return kind, "" if own else others


def basis_of_layers(cost: CostModel) -> str:
    """Return what FP32 times of described layers rest on: timings of this GPU and library, of another library, GPU."""
    if cost.calibration is None or cost.borrowed:
        return "neighbour"
    return "own" if cost.calibration.library == cost.library else "library"


def _described(network: Network) -> str:
    """Return the kind of described layers on tensor cores: networks with CONV, and language models."""
    return "layers-half" if any(layer.conv is not None for layer in network.layers) else "layers-language"


def time_error(network: Network, cost: CostModel) -> TimeError:
    """Return the error of the times of a network with a cost model."""
    kind, predicted_from = kind_of(network, cost)
    bounds = _kinds()[kind]
    return TimeError(int(bounds["rows"]), bounds["median"], bounds["low"], bounds["high"], predicted_from)
