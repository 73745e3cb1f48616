"""Which allocator a plan's tensors go through: on a recorded network PyTorch's, whatever the scheme."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.training.iteration.allocators import Allocator
from buddysim.training.iteration.layered_allocator import LayeredAllocator
from buddysim.training.iteration.recorded_allocator import RecordedAllocator, settings_of
from buddysim.training.networks.recorded.network import RecordedNetwork

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine
    from buddysim.training.iteration.plan import Plan
    from buddysim.training.networks.graph import Network


def allocator_of(plan: Plan, network: Network, machine: TrainingMachine) -> Allocator:
    """Return the allocator of a plan; a network of the papers has that of the scheme."""
    if not isinstance(network, RecordedNetwork):
        return plan.allocator
    if plan.as_recorded:
        return RecordedAllocator.of(network, machine)
    return LayeredAllocator(settings_of(network), machine.workspace_bytes, machine.bytes_outside_allocator())
