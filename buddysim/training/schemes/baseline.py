"""Network-wide allocation, as frameworks had it (vDNN, Section II-C), with slow or fast CONV algorithms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.training.iteration.plan import Plan, TrainingOptions
from buddysim.training.scheme_facts import SchemeFacts
from buddysim.training.schemes import UNCHANGED, _algorithms

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine
    from buddysim.training.cost import CostModel
    from buddysim.training.networks.graph import Network

SUMMARY = {
    "baseline-m": "network-wide allocation on the GPU; CONV algorithms without workspace",
    "baseline-p": "network-wide allocation on the GPU; the fastest CONV algorithms",
}
FAMILY = "baselines"
ORDER = 10
FACTS = SchemeFacts(
    source="Rhu et al., vDNN, MICRO 2016, section II-C: network-wide allocation",
    moves="nothing",
    costs="nothing",
    applies="networks of layers",
    check="`docs/validation/training-papers.md`",
)
ACCURACY = UNCHANGED
#: Networks from a configuration are measured by `eager`.
PAPERS_ONLY = True


def plan(
    network: Network, batch: int, machine: TrainingMachine, cost: CostModel, name: str, options: TrainingOptions
) -> Plan:
    """Nothing moves, nothing is released.

    Raises
    ------
    BuddysimError
        for a recorded network: no framework of today allocates network-wide
    """
    if network.recorded:
        raise BuddysimError(f"scheme {name}: allocates the papers' networks: expected eager for {network.name}")
    return Plan(name, _algorithms.for_variant(name, network, batch, cost), layerwise=False)
