"""Naive swapping, as Gist compares with it (Section V-F): feature maps are copied out and back without overlap.

The feature maps are those that vDNN's `all` policy moves; CONV algorithms without workspace, as in all of that
comparison.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.training.iteration.plan import Plan, TrainingOptions
from buddysim.training.scheme_facts import SchemeFacts
from buddysim.training.schemes import UNCHANGED, _algorithms
from buddysim.training.schemes.vdnn import moved_inputs, nothing_to_offload, offloaded

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine
    from buddysim.training.cost import CostModel
    from buddysim.training.networks.graph import Network

SUMMARY = {"naive-swap": "vdnn-all-m without overlap of copies and computation"}
FAMILY = "vdnn"
ORDER = 120
FACTS = SchemeFacts(
    source="Jain et al., Gist, ISCA 2018, section V-F",
    moves="as vdnn-all-m",
    costs="every copy",
    applies="all networks",
    check="`tests/training/schemes/test_vdnn.py`",
)
ACCURACY = UNCHANGED


def plan(
    network: Network, batch: int, machine: TrainingMachine, cost: CostModel, name: str, options: TrainingOptions
) -> Plan:
    """Each X is copied when its last reader is done, and back when it is read."""
    algorithms = _algorithms.memory_optimal(network, batch, cost)
    stash = moved_inputs(network, offloaded(network, "all"))
    nothing = "" if stash else nothing_to_offload(network, "all")
    return Plan(name, algorithms, stash=stash, prefetch="on-demand", overlap=False, nothing_to_do=nothing)
