"""Optimizers: their state, and the time of an update.

Weights, their gradients and state are single precision in every precision of the layers, except in recorded networks,
whose weights have their own formats. With FP16 and BF16 these are the master weights, as PyTorch's automatic casting
holds them. An update takes the time of the bytes that one kernel per
layer reads and writes, at the bandwidth fraction of an activation's kernel. Launches are not counted, since PyTorch's
``foreach`` and ``fused`` update many layers with one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.training.networks.graph import ELEMENT_BYTES

if TYPE_CHECKING:
    from buddysim.training.cost import CostModel

SECOND = 10**12  # picoseconds


@dataclass(frozen=True)
class Optimizer:
    """An optimizer.

    Attributes
    ----------
    state_elements : elements of state per weight, in the weight's format
    moved_elements : elements read and written per weight: the weight twice, its gradient, all state twice
    summary : text for lists
    """

    name: str
    state_elements: int
    moved_elements: int
    summary: str

    def state_bytes(self, parameters: int, element_bytes: int = ELEMENT_BYTES) -> int:
        """Return the bytes of state for a number of weights of so many bytes each."""
        return parameters * self.state_elements * element_bytes

    def moved_bytes(self, parameters: int, element_bytes: int = ELEMENT_BYTES) -> int:
        """Return the bytes that an update of a number of weights moves."""
        return parameters * self.moved_elements * element_bytes

    def update_ps(self, parameters: int, cost: CostModel, element_bytes: int = ELEMENT_BYTES) -> int:
        """Return the time of an update of a number of weights."""
        rate = cost.machine.dram_bytes_per_s * cost.bandwidth_fraction("relu", "forward")
        return round(self.moved_bytes(parameters, element_bytes) * SECOND / rate)


def _optimizer(name: str, state: int, summary: str) -> Optimizer:
    return Optimizer(name, state, 3 + 2 * state, summary)


OPTIMIZERS: Mapping[str, Optimizer | None] = {
    "none": None,
    "sgd": _optimizer("sgd", 0, "stochastic gradient descent, no state"),
    "momentum": _optimizer("momentum", 1, "the same with momentum: 4 B for each weight"),
    "adam": _optimizer("adam", 2, "Adam: two moment estimates, 8 B for each weight"),
    "adamw": _optimizer("adamw", 2, "Adam with decoupled weight decay: the same state"),
}


def find_optimizer(name: str | None) -> Optimizer | None:
    """Return an optimizer by its name; None for ``"none"``: weights are not updated, as in the papers' iterations.

    Raises
    ------
    BuddysimError
        an unknown name; the message has the nearest
    """
    if name is None:
        return None
    if name not in OPTIMIZERS:
        raise BuddysimError(
            f"optimizer {shortened(name)}: expected one of {', '.join(OPTIMIZERS)}{hint(name, OPTIMIZERS)}"
        )
    return OPTIMIZERS[name]
