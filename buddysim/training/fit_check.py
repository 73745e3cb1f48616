"""Checks whether batches fit, from plan and allocation alone, for the search of the largest batch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from buddysim.training import schemes
from buddysim.training.iteration import memory_usage
from buddysim.training.iteration.build import build
from buddysim.training.iteration.memory_usage import FailedRequest, TensorAddresses
from buddysim.training.iteration.own_allocator import allocator_of
from buddysim.training.iteration.pinned import host_failure, host_pinned
from buddysim.training.iteration.plan import Plan, TrainingOptions
from buddysim.training.iteration.process_memory import compressed_capacity, outside_bytes
from buddysim.training.iteration.program import Program
from buddysim.training.make_plan import make_plan
from buddysim.training.outcome import OutOfMemory, layer_name
from buddysim.training.schemes._links import link_rate

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine
    from buddysim.training.cost import CostModel
    from buddysim.training.networks.graph import Network

Excess = tuple[int, int]
Names = dict[int, dict[str, str]]


@dataclass(frozen=True)
class FitCheck:
    """One batch.

    Attributes
    ----------
    fits : whether GPU memory and pinned host memory suffice, as a simulation of the batch decides
    excess : bytes by which GPU and host would be too small if nothing were fragmented; it fits only if none is above 0
    excess_without_workspace : the same if no CONV algorithm took workspace
    """

    fits: bool
    excess: Excess
    excess_without_workspace: Excess


class FitChecks:
    """The batches of a network under a scheme, each tried once.

    Parameters
    ----------
    scheme : a name of `buddysim.training.schemes.REGISTRY`

    Attributes
    ----------
    planned : plan and program of a batch; the last few are cached
    """

    def __init__(
        self, network: Network, machine: TrainingMachine, cost: CostModel, scheme: str, options: TrainingOptions
    ) -> None:
        self.network = network
        self.machine, self.cost, self.options = machine, cost, options
        module = schemes.REGISTRY.find(scheme)
        self.scheme = getattr(module, "FITS_AS", {}).get(scheme, scheme)
        self._known: dict[int, FitCheck] = {}
        self.planned = lru_cache(maxsize=3)(self._planned)

    def plan(self, batch: int) -> Plan:
        """The scheme's decisions for a batch."""
        return make_plan(self.network_at(batch), batch, self.machine, self.cost, self.scheme, self.options)

    def network_at(self, batch: int) -> Network:
        """The network for a batch."""
        network = self.network.at(batch, self.options.optimizer or "none")
        return network.with_element_bytes(self.cost.precision.element_bytes)

    def algorithms(self, batch: int) -> Names:
        """The names of the CONV algorithms of a batch, by layer and pass."""
        selected = self.plan(batch).algorithms.items()
        return {layer: {name: algorithm.name for name, algorithm in passes.items()} for layer, passes in selected}

    def check(self, batch: int) -> FitCheck:
        """Whether a batch fits, and by how much."""
        if batch not in self._known:
            self._known[batch] = self._tried(batch)
        return self._known[batch]

    def out_of_memory(self, batch: int) -> OutOfMemory | None:
        """Why a batch doesn't fit; None where it does."""
        plan, program = self.planned(batch)
        network = plan.recorded(self.network_at(batch))
        placement, failure = allocate_tensors(program, plan, network, self.machine, self.options)
        if failure is None:
            return None
        peak = memory_usage.peak_bytes(placement.program, placement.groups) + placement.beside_tensors_bytes
        excess = max(0, peak - (capacity_bytes(plan, self.network_at(batch), self.machine, self.options) or 0))
        return OutOfMemory(failure, layer_name(network, failure.layer), excess)

    def _planned(self, batch: int) -> tuple[Plan, Program]:
        """The scheme's decisions for a batch, and the iteration that they describe."""
        plan, link = self.plan(batch), link_rate(self.machine, self.options.link)
        return plan, build(plan.recorded(self.network_at(batch)), batch, self.cost, plan, link, self.options.optimizer)

    def _tried(self, batch: int) -> FitCheck:
        plan, program = self.planned(batch)
        capacity, bound = (
            capacity_bytes(plan, self.network_at(batch), self.machine, self.options),
            self.machine.max_pinned_bytes,
        )
        most = memory_usage.UNLIMITED if capacity is None else capacity
        pinned = host_pinned(program)[0] - bound
        allocator = allocator_of(plan, plan.recorded(self.network_at(batch)), self.machine)
        min_bytes = allocator.min_bytes(program)
        excess = min_bytes - most, pinned
        if any(tensor.kind == "workspace" for tensor in program.tensors):
            min_bytes = allocator.min_bytes(program, memory_usage.is_not_workspace)
        fits = max(excess) <= 0
        if fits:
            placement = allocator.allocate(program, capacity, self.options.pool_policy)
            fits = not (placement.failure or host_failure(placement.program, bound))
        return FitCheck(fits, excess, (min_bytes - most, pinned))


def allocate_tensors(
    program: Program, plan: Plan, network: Network, machine: TrainingMachine, options: TrainingOptions
) -> tuple[TensorAddresses, FailedRequest | None]:
    """The placement of an iteration, and why it doesn't fit; it is then the one on as much memory as it takes."""
    allocator = allocator_of(plan, network, machine)
    placement = allocator.allocate(program, capacity_bytes(plan, network, machine, options), options.pool_policy)
    failure = placement.failure
    if failure:
        placement = allocator.allocate(program, None, options.pool_policy)
    return placement, failure or host_failure(placement.program, machine.max_pinned_bytes)


def capacity_bytes(plan: Plan, network: Network, machine: TrainingMachine, options: TrainingOptions) -> int | None:
    """GPU memory that an iteration has, in bytes of uncompressed tensors; None for as much as it takes."""
    if plan.unlimited:
        return None
    size = options.memory_bytes or machine.memory_bytes
    return compressed_capacity(size, plan.memory_ratio, outside_bytes(network, machine))
