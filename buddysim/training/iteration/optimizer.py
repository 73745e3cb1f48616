"""What updates the weights: its state, and the time of an update.

Weights, their gradients and state are single precision, whatever layers compute in: with FP16 and BF16 the weights that
are counted are the master weights that an update needs (as PyTorch's automatic casting keeps them). An update moves at
least what one kernel per layer reads and writes, at the fraction of the device memory bandwidth that an activation's
kernel reaches; its launches aren't counted, since PyTorch's ``foreach`` and ``fused`` update many layers with one.
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
    state_elements : of single precision that it keeps for each weight
    moved_elements : that an update reads and writes for each weight: the weight twice, its gradient, all state twice
    summary : for lists
    """

    name: str
    state_elements: int
    moved_elements: int
    summary: str

    def state_bytes(self, parameters: int) -> int:
        """Bytes of state of so many weights."""
        return parameters * self.state_elements * ELEMENT_BYTES

    def moved_bytes(self, parameters: int) -> int:
        """Bytes that an update of so many weights moves."""
        return parameters * self.moved_elements * ELEMENT_BYTES

    def update_ps(self, parameters: int, cost: CostModel) -> int:
        """Time of an update of so many weights."""
        rate = cost.machine.dram_bytes_per_s * cost.bandwidth_fraction("relu", "forward")
        return round(self.moved_bytes(parameters) * SECOND / rate)


def _optimizer(name: str, state: int, summary: str) -> Optimizer:
    return Optimizer(name, state, 3 + 2 * state, summary)


OPTIMIZERS: Mapping[str, Optimizer | None] = {
    "none": None,
    "sgd": _optimizer("sgd", 0, "stochastic gradient descent, no state"),
    "momentum": _optimizer("momentum", 1, "the same with momentum: 4 B for each weight"),
    "adam": _optimizer("adam", 2, "Adam: two moment estimates, 8 B for each weight"),
}


def find_optimizer(name: str) -> Optimizer | None:
    """An optimizer by its name; None for ``"none"``: the weights aren't updated, as in the papers' iterations.

    Raises
    ------
    BuddysimError
        names the nearest of an unknown one
    """
    if name not in OPTIMIZERS:
        raise BuddysimError(
            f"optimizer {shortened(name)}: expected one of {', '.join(OPTIMIZERS)}{hint(name, OPTIMIZERS)}"
        )
    return OPTIMIZERS[name]
