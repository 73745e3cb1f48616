"""PyTorch's `torch.autograd.graph.save_on_cpu`: every tensor saved for backward is copied out, and back on demand.

A model of a configuration is recorded with its hooks around forward pass and loss, tensor by tensor as autograd saves
them (`training.autograd.offload`). On other networks it is by layers.

The copies run on the compute stream: out when a layer has saved them, back when its backward step unpacks them, so
nothing overlaps. A tensor that two layers save is copied twice (X of a CONV, which is Y of the ReLU before it), and
weights that autograd saves are copied too. Host memory is pinned (``pin_memory=True``, not the default): without it,
name a link of pageable memory, ``--link pcie4-pageable``. A tensor that is copied back lives for one backward step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.training.autograd.offload import OffloadSettings
from buddysim.training.iteration.allocators import LiveSetCounter
from buddysim.training.iteration.plan import Plan, TrainingOptions
from buddysim.training.networks.recorded.network import RecordedNetwork
from buddysim.training.networks.torch_saves import SavedTensors, saved_by_torch
from buddysim.training.options.offload_rule import OffloadRule
from buddysim.training.options.saving_rules import SavingRules
from buddysim.training.scheme_facts import SchemeFacts
from buddysim.training.schemes import UNCHANGED, _algorithms, eager

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine
    from buddysim.training.cost import CostModel
    from buddysim.training.networks.graph import Network

SUMMARY = {"save-on-cpu": "PyTorch's save_on_cpu: every saved tensor copied to the host and back without overlap"}
FAMILY = "pytorch"
ORDER = 500
FACTS = SchemeFacts(
    source="PyTorch 2.13, `torch/autograd/graph.py`, `save_on_cpu`",
    moves="every saved tensor, weights too, each time that it is saved",
    costs="every copy; the host waits for each one out",
    applies="all networks",
    check="gradients, and every tensor that moves, in PyTorch (`tests/training/transformers/test_schemes_in_torch.py`)",
)
ACCURACY = UNCHANGED


def plan(
    network: Network, batch: int, machine: TrainingMachine, cost: CostModel, name: str, options: TrainingOptions
) -> Plan:
    """Everything saved moves; the fastest CONV algorithms."""
    if isinstance(network, RecordedNetwork) and network.record_with is not None:
        everything = OffloadRule(OffloadSettings(streams=0, min_bytes=0, blocking=True), outputs=True)
        return Plan(
            name, {}, as_recorded=True, allocator=LiveSetCounter(), saving=SavingRules((), everything),
            assumptions={"memory": eager.MEMORY},
        )  # fmt: skip
    return Plan(
        name,
        _algorithms.fastest(network, batch, cost),
        overlap=False,
        prefetch="on-demand",
        backward_reads={layer.index: frozenset({"dy"}) for layer in network.layers},
        saved_bytes={layer.index: 0 for layer in network.layers},
        offload_saved_tensors={
            index: _items(network, saved, batch) for index, saved in enumerate(saved_by_torch(network, batch)) if index
        },
    )


def _items(network: Network, saved: SavedTensors, batch: int) -> tuple[tuple[str, int], ...]:
    items = [("feature_map", network.output_bytes(index, batch)) for index in saved.feature_maps]
    items += [("state", saved.state_bytes), ("weights", saved.weight_bytes)]
    return tuple((name, byte_count) for name, byte_count in items if byte_count)
