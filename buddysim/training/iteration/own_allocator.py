"""Which allocator a plan's tensors go through: on a recorded network PyTorch's, whatever the scheme."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.training.caching_allocator import AllocatorSettings
from buddysim.training.iteration.allocators import Allocator
from buddysim.training.iteration.layered_allocator import LayeredAllocator
from buddysim.training.iteration.process_memory import outside_bytes
from buddysim.training.iteration.recorded_allocator import RecordedAllocator
from buddysim.training.networks.recorded.network import RecordedNetwork

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine
    from buddysim.training.iteration.plan import Plan
    from buddysim.training.networks.graph import Network


def allocator_of(plan: Plan, network: Network, machine: TrainingMachine) -> Allocator:
    """Return the allocator of a plan; a network of the papers has that of the scheme."""
    if not isinstance(network, RecordedNetwork):
        return plan.allocator
    settings = AllocatorSettings.parse(str(network.options.get("alloc_conf") or ""))
    taken = settings, machine.workspace_bytes, outside_bytes(network, machine)
    return RecordedAllocator(*taken, network=network) if plan.as_recorded else LayeredAllocator(*taken)
