"""A training scheme of your own: vDNN that offloads large feature maps only."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from buddysim.base.option import Option, values
from buddysim.training.iteration.plan import Plan, TrainingOptions
from buddysim.training.schemes import vdnn

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine
    from buddysim.training.cost import CostModel
    from buddysim.training.networks.graph import Network

SUMMARY = {"vdnn-large": "vdnn-all-p that offloads only feature maps larger than --larger-than"}
OPTIONS = {
    "larger_than": Option(float, "size above which a feature map is offloaded, in MiB", "MIB", 16.0, "vdnn-large")
}


def plan(
    network: Network, batch: int, machine: TrainingMachine, cost: CostModel, name: str, options: TrainingOptions
) -> Plan:
    """The plan of vdnn-all-p without the small feature maps."""
    least = values(OPTIONS, options.extra)["larger_than"] * 2**20
    everything = vdnn.plan(network, batch, machine, cost, "vdnn-all-p", options)
    large = {layer: stash for layer, stash in everything.stash.items() if network.output_bytes(layer, batch) > least}
    note = f"{len(large)} of {len(everything.stash)} feature maps are offloaded"
    return replace(everything, scheme=name, stash=large, notes=(note,))
