"""What the times of collectives in a result rest on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.training.collectives.contention import kernels_left
from buddysim.training.collectives.times import CollectiveTimes

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine


def collective_assumptions(machine: TrainingMachine, gpus: int) -> dict[str, str]:
    """Return the assumptions by subject; none of one GPU.

    Raises
    ------
    BuddysimError
        a machine without a link to other GPUs
    """
    if gpus < 2:
        return {}
    times = CollectiveTimes(machine)
    lost = float(1 - kernels_left())
    nodes = f", {times.node_gpus} in a node" if gpus > times.node_gpus else ""
    return {
        "collectives": f"{gpus} GPUs linked by {times.link}{nodes}; {times.constants.source}; a gather and a reduction "
        "at once have half of the link each",
        "contention": f"kernels next to collectives lose {lost:.0%} of their rate: fitted to steps of 8 A100, 8 H100",
    }
