"""What PyTorch does by itself: a saved tensor lives until its last use, and reference counts free it.

A recorded network (from a ``config.json``, a `transformers` model, a captured graph) runs as it was recorded, operation
by operation, and its allocations through PyTorch's caching allocator. On the papers' networks, whose layers are
cuDNN's, each layer saves what PyTorch's does; memory is counted in bytes that live.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from buddysim.training.iteration.allocators import LiveSetCounter
from buddysim.training.iteration.plan import Plan, TrainingOptions
from buddysim.training.networks.torch_saves import saved_by_torch
from buddysim.training.scheme_facts import SchemeFacts
from buddysim.training.schemes import UNCHANGED, _algorithms

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine
    from buddysim.training.cost import CostModel
    from buddysim.training.networks.graph import Network

SUMMARY = {"eager": "PyTorch by itself: saved tensors live until their last use"}
FAMILY = "baselines"
ORDER = 15
FACTS = SchemeFacts(
    source="PyTorch 2.13: reference counts, autograd, its caching allocator",
    moves="nothing",
    costs="nothing",
    applies="all networks",
    check="saved tensors and events of 15 classes of `transformers` equal "
    "(`tests/training/transformers/test_symbolic.py`); `docs/validation/llm.md`",
)
ACCURACY = UNCHANGED

CACHING = (
    "Reserved memory is that of PyTorch's caching allocator in the second of two equal iterations; a context or "
    "workspace that the machine has no figure of is left out: optimistic."
)
MEMORY = "GPU memory is what live tensors take; the allocator's rounding and fragmentation are left out: optimistic."


def plan(
    network: Network, batch: int, machine: TrainingMachine, cost: CostModel, name: str, options: TrainingOptions
) -> Plan:
    """Nothing moves; what autograd saves is freed as its backward step is done."""
    if network.recorded:
        return Plan(name, {}, as_recorded=True, allocator=LiveSetCounter(), assumptions={"memory": CACHING})
    return replace(as_autograd_saves(network, batch, cost, name), assumptions={"memory": MEMORY})


def as_autograd_saves(network: Network, batch: int, cost: CostModel, name: str) -> Plan:
    """Return the plan of a described network in which nothing moves and layers save what PyTorch's do."""
    saved_tensors = dict(enumerate(saved_by_torch(network, batch)))
    return Plan(
        name,
        _algorithms.fastest(network, batch, cost),
        backward_reads={index: saved.reads for index, saved in saved_tensors.items()},
        saved_bytes={index: saved.state_bytes for index, saved in saved_tensors.items()},
        allocator=LiveSetCounter(),
    )
