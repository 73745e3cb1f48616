"""Weights and optimizer on the host: ZeRO-Infinity, FSDP's CPU offload.

(Rajbhandari et al., SC 2021; FSDP2's ``CPUOffloadPolicy``.) A block's weights are fetched for the time of its passes;
gradients go to the host, which updates the weights there. A model of a configuration is recorded so
(`training.host.host_weights`). On other networks, a layer with weights counts as a block. NVMe drives hold what doesn't
fit into host memory.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.base.option import Option, values
from buddysim.training.host.needs import check_host_updates
from buddysim.training.iteration.allocators import LiveSetCounter
from buddysim.training.iteration.plan import Plan, TrainingOptions
from buddysim.training.networks.recorded.network import RecordedNetwork
from buddysim.training.options.optimizer_offload import DEVICES, OptimizerOffload
from buddysim.training.options.saving_rules import SavingRules
from buddysim.training.options.weights_offload import WeightsOffload
from buddysim.training.scheme_facts import SchemeFacts
from buddysim.training.schemes import UNCHANGED, eager
from buddysim.training.schemes.activation_checkpointing import CHECKPOINT, rules_and_notes
from buddysim.training.schemes.offload_optimizer import HOST, NO_OPTIMIZER, OPTIMIZER_DEVICE

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine
    from buddysim.training.cost import CostModel
    from buddysim.training.networks.graph import Network

SUMMARY = {"offload-weights": "weights and optimizer state on the host; weights fetched block by block"}
FAMILY = "pytorch"
ORDER = 525
FACTS = SchemeFacts(
    source="FSDP2, `CPUOffloadPolicy`; Rajbhandari et al., ZeRO-Infinity, SC 2021",
    moves="weights of a block to the GPU for each of its passes, gradients to the host",
    costs="copies that computations do not hide, updates as offload-optimizer",
    applies="any optimizer",
    check="gradients, and every weight that is fetched, in PyTorch "
    "(`tests/training/transformers/test_schemes_in_torch.py`); `tests/training/host`",
)
ACCURACY = UNCHANGED
_GROUP = "scheme offload-weights"
OPTIONS = {
    "checkpoint": CHECKPOINT,
    "optimizer_device": OPTIMIZER_DEVICE,
    "weights_device": Option(
        str, "where weights lie", "NAME", "host", _GROUP, choices=DEVICES
    ),
    "weights_ahead": Option(
        int, "blocks whose weights are fetched ahead; 0: fetched between the computations", "N", 1, _GROUP
    ),
}  # fmt: skip
MAX_AHEAD = 1 << 20


def plan(
    network: Network, batch: int, machine: TrainingMachine, cost: CostModel, name: str, options: TrainingOptions
) -> Plan:
    """Weights come up twice, gradients go down; the fastest CONV algorithms.

    Raises
    ------
    BuddysimError
        options out of range
    """
    selected = values(OPTIONS, options.extra)
    ahead = int(selected["weights_ahead"])
    if not 0 <= ahead <= MAX_AHEAD:
        raise BuddysimError(f"weights_ahead {ahead}: expected 0 to {MAX_AHEAD}")
    weights = WeightsOffload(ahead, selected["weights_device"])
    optimizer = OptimizerOffload(device=selected["optimizer_device"])
    nothing = NO_OPTIMIZER if options.optimizer in (None, "none") else ""
    if isinstance(network, RecordedNetwork) and network.record_with is not None:
        check_host_updates(network, name)
        checkpoints, notes = rules_and_notes(selected["checkpoint"], network)
        host = {} if nothing else {"optimizer": optimizer, "weights": weights}
        rules = SavingRules(checkpoints, **host)  # type: ignore[arg-type]
        return Plan(
            name, {}, as_recorded=True, allocator=LiveSetCounter(), nothing_to_do=nothing,
            saving=rules,
            notes=notes,
            assumptions={"memory": eager.MEMORY, "host": HOST},
        )  # fmt: skip
    return replace(
        eager.as_autograd_saves(network, batch, cost, name),
        host_optimizer=None if nothing else optimizer,
        host_weights=None if nothing else weights,
        nothing_to_do=nothing,
        assumptions={"host": HOST},
    )
