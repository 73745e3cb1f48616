"""The baseline with the fastest algorithms on a GPU with as much memory as it takes (vDNN, Section V-C)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from buddysim.training.iteration.plan import Plan, TrainingOptions
from buddysim.training.scheme_facts import SchemeFacts
from buddysim.training.schemes import UNCHANGED, _algorithms, eager

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine
    from buddysim.training.cost import CostModel
    from buddysim.training.networks.graph import Network

SUMMARY = {"oracle": "unlimited GPU memory; the fastest CONV algorithms"}
FAMILY = "baselines"
ORDER = 20
FACTS = SchemeFacts(
    source="Rhu et al., vDNN, MICRO 2016, section IV-C",
    moves="nothing; memory is unlimited",
    costs="nothing",
    applies="all networks",
    check="`docs/validation/training-papers.md`",
)
ACCURACY = UNCHANGED
#: The GPU has as much memory as the iteration takes.
UNLIMITED = True


def plan(
    network: Network, batch: int, machine: TrainingMachine, cost: CostModel, name: str, options: TrainingOptions
) -> Plan:
    """Return the plan of baseline-p, of a recorded network that of eager, without a limit of memory."""
    if network.recorded:
        return replace(eager.plan(network, batch, machine, cost, name, options), unlimited=UNLIMITED)
    return Plan(name, _algorithms.fastest(network, batch, cost), layerwise=False, unlimited=UNLIMITED)
