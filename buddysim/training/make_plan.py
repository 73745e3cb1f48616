"""Asks a scheme for its plan, and refuses one whose iteration would leave out what the options ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.base.returned import returned
from buddysim.training import schemes
from buddysim.training.iteration.plan import Plan
from buddysim.training.networks.recorded.network import RecordedNetwork
from buddysim.training.not_simulated import NotSimulatedError

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine
    from buddysim.training.cost import CostModel
    from buddysim.training.iteration.plan import TrainingOptions
    from buddysim.training.networks.graph import Network

#: Options of a recorded step whose operations belong to no layer: their values without effect.
_NOT_BY_LAYER = {
    "ddp": None,
    "fsdp": None,
    "zero1": None,
    "zero2": None,
    "zero3": None,
    "accumulation": 1,
    "backward_passes": 1,
    "optimizer_in_backward": False,
}


def make_plan(
    network: Network, batch: int, machine: TrainingMachine, cost: CostModel, scheme: str, options: TrainingOptions
) -> Plan:
    """Return a scheme's decisions.

    Raises
    ------
    NotSimulatedError
        a plan by layers of a step that has operations of no layer: collectives, micro-steps, updates in the backward
        pass; tensors that compiled code doesn't save
    """
    make = schemes.REGISTRY.find(scheme).plan
    plan = returned(make(network, batch, machine, cost, scheme, options), Plan, f"training scheme {scheme}: plan", make)
    plan = plan.as_recorded_if_idle(network)
    if isinstance(network, RecordedNetwork) and not plan.as_recorded:
        moves = plan.stash or plan.offload_saved_tensors or plan.host_optimizer or plan.separate_backward
        repeats = not moves and network.repeated_passes == network.options.get("backward_passes")
        for name, neutral in _NOT_BY_LAYER.items():
            if name == "backward_passes" and repeats:
                continue  # each pass recomputes its own
            if network.options.get(name, neutral) != neutral:
                raise NotSimulatedError(
                    scheme,
                    f"not simulated with {name}: planned layer by layer",
                    "eager, activation-checkpointing or offload-activations",
                )
    saving = plan.saving
    packs = saving is not None and bool(saving.compression or (saving.offload and not saving.checkpoints))
    if packs and isinstance(network, RecordedNetwork) and network.options.get("compile"):
        raise NotSimulatedError(
            scheme, "not simulated with compile: moves or encodes what eager code saves", "recomputed blocks"
        )
    return plan
