"""A training as a series of epochs: one iteration of each, since decisions and zeros may change from epoch to epoch.

A scheme takes the epoch as its option ``epoch``, as contents of feature maps have it (`contents.options`). One
without it is the same in every epoch, and simulated once.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from buddysim.base.errors import BuddysimError
from buddysim.training import schemes
from buddysim.training.driver import simulate_outcome

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine
    from buddysim.training.networks.graph import Network
    from buddysim.training.outcome import IterationOutcome

OPTION = "epoch"


@dataclass(frozen=True)
class Epochs:
    """One iteration of each epoch, in the order given."""

    epochs: tuple[float, ...]
    outcomes: tuple[IterationOutcome, ...]

    def time_ps(self, iterations: Sequence[int]) -> int:
        """Time of the training, with so many iterations of each epoch."""
        return sum(count * outcome.time_ps for count, outcome in zip(iterations, self.outcomes, strict=True))


def simulate_epochs(
    network: Network | str | os.PathLike[str],
    batch: int,
    machine: TrainingMachine | str,
    scheme: str,
    epochs: Sequence[float],
    **keywords: Any,
) -> Epochs:
    """Simulates an iteration of each epoch; the other parameters are those of `simulate_outcome`.

    Raises
    ------
    BuddysimError
        where no epoch is given, or one is below 0
    """
    if not epochs or min(epochs) < 0:
        raise BuddysimError(f"epochs {list(epochs)}: expected one or more, each 0 or above")
    changes = depends_on_epoch(scheme)
    outcomes: list[IterationOutcome] = []
    for epoch in epochs:
        if outcomes and not changes:
            outcomes.append(outcomes[0])
            continue
        if changes:
            keywords[OPTION] = float(epoch)
        outcomes.append(simulate_outcome(network, batch, machine, scheme, **keywords))
    return Epochs(tuple(map(float, epochs)), tuple(outcomes))


def depends_on_epoch(scheme: str) -> bool:
    """Whether a scheme's decisions may change from epoch to epoch."""
    return OPTION in getattr(schemes.REGISTRY.find(scheme), "OPTIONS", {})
