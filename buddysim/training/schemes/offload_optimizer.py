"""The optimizer on the host: ZeRO-Offload.

(Ren et al., USENIX ATC 2021; DeepSpeed's ``cpu_offload``, torchao's `CPUOffloadOptimizer`.) Gradients go to the host,
whose processor updates the weights, which come back; optimizer state and masters are never on the GPU. A model of a
configuration is recorded so (`training.host.host_optimizer`), in the order of either library. On other networks,
weight gradients stay on the GPU until they are copied, layer by layer, and weights come back as they are updated.

`offload-optimizer-delayed` updates with the gradients of the iteration before (section 5.2 of the paper): the update
overlaps with the computations, and the weights of an iteration are those of one update earlier. Results change.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from buddysim.base.option import Option, values
from buddysim.training.host.needs import check_host_updates
from buddysim.training.iteration.allocators import LiveSetCounter
from buddysim.training.iteration.plan import Plan, TrainingOptions
from buddysim.training.networks.recorded.network import RecordedNetwork
from buddysim.training.options.optimizer_offload import DEVICES, LIBRARIES, OptimizerOffload
from buddysim.training.options.saving_rules import SavingRules
from buddysim.training.scheme_facts import SchemeFacts
from buddysim.training.schemes import UNCHANGED, eager
from buddysim.training.schemes.activation_checkpointing import CHECKPOINT, rules_and_notes

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine
    from buddysim.training.cost import CostModel
    from buddysim.training.networks.graph import Network

_DELAYED = "offload-optimizer-delayed"
SUMMARY = {
    "offload-optimizer": "optimizer state on the host, whose processor updates the weights",
    _DELAYED: "the same, one iteration late, next to the computations: changes results",
}
FAMILY = "pytorch"
ORDER = 520
FACTS = SchemeFacts(
    source="Ren et al., ZeRO-Offload, ATC 2021; torchao, `optim/cpu_offload.py`; DeepSpeed, `zero/stage_1_and_2.py`",
    moves="gradients to the host, updated weights back; optimizer state and masters stay on the host or on NVMe drives",
    costs="updates at the rate of host memory, copies",
    applies="any optimizer",
    check="weights after two updates, and every gradient that moves, in PyTorch "
    "(`tests/training/transformers/test_schemes_in_torch.py`); `tests/training/host`",
)
#: Shared with `offload-weights`.
OPTIMIZER_DEVICE = Option(str, "where optimizer state lies", "NAME", "host", "optimizer on the host", choices=DEVICES)
OPTIONS = {
    "checkpoint": CHECKPOINT,
    "optimizer_device": OPTIMIZER_DEVICE,
    "update_order": Option(
        str,
        "order of copies: of torchao (weight by weight, overlapped) or deepspeed (all gradients, update, all weights)",
        "NAME", "torchao", "scheme offload-optimizer", choices=LIBRARIES,
    ),
    "keep_gradients": Option(
        bool, "leave gradients on the GPU until the update", default=False, group="scheme offload-optimizer"
    ),
}  # fmt: skip
NO_OPTIMIZER = "nothing to offload: no optimizer runs (--optimizer)"


def _accuracy(name: str) -> str:
    """The effect on the accuracy."""
    return "not measured" if name == _DELAYED else UNCHANGED


ACCURACY = _accuracy


def plan(
    network: Network, batch: int, machine: TrainingMachine, cost: CostModel, name: str, options: TrainingOptions
) -> Plan:
    """Gradients go down and weights come up; the fastest CONV algorithms.

    Raises
    ------
    BuddysimError
        a choice that the network doesn't have
    """
    selected = values(OPTIONS, options.extra)
    rule = OptimizerOffload(
        selected["update_order"], bool(selected["keep_gradients"]), name == _DELAYED, selected["optimizer_device"]
    )
    notes: tuple[str, ...] = (LATE,) if rule.delayed else ()
    nothing = NO_OPTIMIZER if options.optimizer in (None, "none") else ""
    if isinstance(network, RecordedNetwork) and network.record_with is not None:
        check_host_updates(network, name)
        checkpoints, recomputed = rules_and_notes(selected["checkpoint"], network)
        return Plan(
            name, {}, as_recorded=True, allocator=LiveSetCounter(), nothing_to_do=nothing, notes=(*notes, *recomputed),
            saving=SavingRules(checkpoints, optimizer=None if nothing else rule),
            assumptions={"memory": eager.MEMORY, "host": HOST, "gradients": IN_FLIGHT},
        )  # fmt: skip
    return replace(
        eager.as_autograd_saves(network, batch, cost, name),
        host_optimizer=None if nothing else rule,
        nothing_to_do=nothing,
        notes=notes,
        assumptions={"host": HOST},
    )


HOST = (
    "The host updates weights at 0.49 of its memory's bandwidth, and does nothing else meanwhile: optimistic where the "
    "host loads data."
)
IN_FLIGHT = (
    "A gradient is freed when the next one is there: optimistic for memory where the link is slower than the backward "
    "pass."
)
LATE = "weights are those of one update earlier: results change"
