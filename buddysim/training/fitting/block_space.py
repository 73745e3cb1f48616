"""Plans of a model of a configuration: its blocks are the groups, and its step is recorded anew for each plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from buddysim.base.garbage import collection_paused
from buddysim.training.autograd.blocks import BLOCK, blocks_of, divide_path
from buddysim.training.cost.host_rates import HostRates
from buddysim.training.fit_check import capacity_bytes
from buddysim.training.fitting.choices import (
    KEEP,
    OFFLOAD,
    RECOMPUTE,
    RECOMPUTE_OFFLOAD,
    SELECTIVE,
    GroupChoice,
    compressed_choices,
    offload_of,
)
from buddysim.training.fitting.plan_space import PlanSpace, possible_placements
from buddysim.training.fitting.recorded_facts import recorded_facts
from buddysim.training.iteration.allocators import LiveSetCounter
from buddysim.training.iteration.own_allocator import allocator_of
from buddysim.training.iteration.plan import Plan
from buddysim.training.iteration.process_memory import outside_bytes
from buddysim.training.iteration.recorded_allocator import RecordedAllocator
from buddysim.training.networks.recorded.network import RecordedNetwork
from buddysim.training.options.block_range import BlockRange
from buddysim.training.options.checkpoint_rule import CheckpointRule
from buddysim.training.options.compression_rule import CompressionRule
from buddysim.training.options.offload_rule import OffloadRule
from buddysim.training.options.saving_rules import SavingRules
from buddysim.training.recorded_step.from_config import ConfigNetwork
from buddysim.training.schemes import eager
from buddysim.training.schemes._links import link_rate

if TYPE_CHECKING:
    from buddysim.training.cost import CostModel
    from buddysim.training.fitting.assignment import Assignment
    from buddysim.training.fitting.facts import GroupFacts
    from buddysim.training.outcome import IterationOutcome
    from buddysim.training.request import TrainingRequest

#: Kinds of modules whose saved tensors are offloaded apart from others', the largest.
OFFLOADED_KINDS = 2


class BlockSpace(PlanSpace):
    """Blocks of a model.

    Parameters
    ----------
    allow : names of lossy choices and placements
    """

    network: RecordedNetwork
    tries = 2
    budgets = 8
    counts_live_tensors = False
    early = 2
    serial_copies = True

    def __init__(
        self, request: TrainingRequest, described: ConfigNetwork, cost: CostModel, allow: Sequence[str] = ()
    ) -> None:
        network = described.at(request.batch or 1, request.options.optimizer or "none")
        super().__init__(request, network, cost)
        self.groups = tuple(path for path, _ in blocks_of(described.model))
        self.choices = self._choices(allow)
        self.placements = possible_placements(self, allow)

    def _choices(self, allow: Sequence[str]) -> tuple[GroupChoice, ...]:
        if not self.groups:
            return (KEEP,)
        if self.network.options.get("compile"):
            return KEEP, RECOMPUTE, *SELECTIVE
        kinds = [offload_of(kind) for kind in self._largest_kinds()]
        return (KEEP, *SELECTIVE, RECOMPUTE, *kinds, OFFLOAD, RECOMPUTE_OFFLOAD, *compressed_choices(allow))

    def _largest_kinds(self) -> list[str]:
        """Kinds of modules within the blocks that save the most."""
        sizes: Counter[str] = Counter()
        seen: set[int] = set()
        for one in self.network.tape.saved:
            record = self.network.tape.storages[one.storage]
            block, kind = divide_path(one.scope)
            if record.number not in seen and record.kind == "activation" and block in self.groups and kind != BLOCK:
                sizes[kind] += record.bytes
                seen.add(record.number)
        return [kind for kind, _ in sizes.most_common(OFFLOADED_KINDS)]

    def plan(self, assignment: Assignment) -> Plan:
        """Return rules of saving, block range by block range."""
        checkpoints, offloads, compressed = [], [], []
        bits = 8
        for first, last, number in assignment.runs():
            choice = self.choices[number]
            if choice.recomputes:
                checkpoints.append(CheckpointRule(first, last, stored=choice.stored))
            if choice.offloads is not None:
                offloads.append(BlockRange(first, last, choice.offloads))
            if choice.bits is not None:
                compressed.append(BlockRange(first, last))
                bits = choice.bits
        placement = self.placements[assignment.placement]
        rules = SavingRules(
            tuple(checkpoints),
            OffloadRule(ranges=tuple(offloads)) if offloads else None,
            CompressionRule(bits, tuple(compressed)) if compressed else None,
            placement.optimizer,
            placement.weights,
        )
        saving = None if rules == SavingRules() else rules
        return Plan(
            "plan", {}, as_recorded=True, saving=saving, allocator=LiveSetCounter(),
            assumptions={"memory": eager.CACHING},
        )  # fmt: skip

    def facts(self, assignment: Assignment, outcome: IterationOutcome) -> GroupFacts:
        """Return the figures of the record."""
        network = outcome.network
        assert isinstance(network, RecordedNetwork)
        rule = self.placements[assignment.placement].optimizer
        return recorded_facts(
            network.tape, self.groups, self.cost, link_rate(self.machine, self.options.link),
            HostRates.of(self.machine), late=rule is not None and rule.delayed,
        )  # fmt: skip

    @collection_paused()
    def exceeds(self, plan: Plan) -> bool:
        """Whether the allocator fails on the record of a plan."""
        recorded = plan.recorded(self.network)
        allocator = allocator_of(plan, recorded, self.machine)
        capacity = capacity_bytes(plan, recorded, self.machine, self.options)
        return capacity is not None and isinstance(allocator, RecordedAllocator) and allocator.exceeds(capacity)

    @property
    def blocks(self) -> tuple[str, ...] | None:
        """Paths of the model's blocks."""
        return self.groups

    def unavailable_bytes(self) -> int:
        """Return the CUDA context, NCCL's memory, and the workspace of cuBLAS in the thread of the forward pass."""
        return outside_bytes(self.network, self.machine) + self.machine.workspace_bytes
