"""Plans of other networks, and of captured graphs: parts between single feature maps are the groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from buddysim.training.fitting.choices import KEEP, OFFLOAD, RECOMPUTE, RECOMPUTE_OFFLOAD
from buddysim.training.fitting.layered_facts import layered_facts
from buddysim.training.fitting.plan_space import PlanSpace, possible_placements
from buddysim.training.iteration.plan import Plan
from buddysim.training.iteration.stash import Offload, Stash
from buddysim.training.networks.torch_saves import saved_by_torch
from buddysim.training.schemes import eager
from buddysim.training.schemes.activation_checkpointing import split_points

if TYPE_CHECKING:
    from buddysim.training.cost import CostModel
    from buddysim.training.fitting.assignment import Assignment
    from buddysim.training.fitting.facts import GroupFacts
    from buddysim.training.networks.graph import Network
    from buddysim.training.outcome import IterationOutcome
    from buddysim.training.request import TrainingRequest


class LayerSpace(PlanSpace):
    """Parts of a network that is planned layer by layer; what is recomputed may hold one feature map of each part."""

    def __init__(
        self, request: TrainingRequest, described: Network, cost: CostModel, allow: Sequence[str] = ()
    ) -> None:
        assert request.batch is not None
        network = described.at(request.batch, request.options.optimizer or "none")
        super().__init__(request, network.with_element_bytes(cost.precision.element_bytes), cost)
        self.parts = split_points(self.network)
        self.groups = tuple(self._name(first, last) for first, last in self.parts)
        self.choices = (KEEP, RECOMPUTE, OFFLOAD, RECOMPUTE_OFFLOAD)
        self.saved = saved_by_torch(self.network, self.batch)
        self.base = eager.as_autograd_saves(self.network, self.batch, cost, "plan")
        readers = [(index, self.network.buffer_of(owner)) for index, one in enumerate(self.saved)
                   for owner in one.feature_maps]  # fmt: skip
        self.owners = {owner for _, owner in readers if owner}
        part_of = {layer: part for part, (first, last) in enumerate(self.parts) for layer in range(first, last + 1)}
        self.read_outside = {owner for index, owner in readers if part_of.get(index) != part_of.get(owner)}
        self.placements = possible_placements(self, allow)

    def _name(self, first: int, last: int) -> str:
        layers = self.network.layers
        return layers[first].name if first == last else f"{layers[first].name}..{layers[last].name}"

    def plan(self, assignment: Assignment) -> Plan:
        """Return parts that run again, and feature maps that go to the host."""
        segments: list[tuple[int, int]] = []
        stash: dict[int, Stash] = {}
        for number, (first, last) in zip(assignment.choices, self.parts, strict=True):
            choice = self.choices[number]
            if choice.recomputes:
                segments.append((first, last))
            if choice.offloads is not None:
                among = self.read_outside if choice.recomputes else self.owners
                stash |= {owner: Stash(offload=Offload()) for owner in range(first, last + 1) if owner in among}
        placement = self.placements[assignment.placement]
        return replace(
            self.base, stash=stash, segments=tuple(segments), prefetch="just-in-time",
            host_optimizer=placement.optimizer, host_weights=placement.weights,
        )  # fmt: skip

    def facts(self, assignment: Assignment, outcome: IterationOutcome) -> GroupFacts:
        """Return the figures of the program."""
        recomputed = {group for group, one in enumerate(assignment.choices) if self.choices[one].recomputes}
        return layered_facts(outcome.program, self.parts, self.read_outside, recomputed)

    def unavailable_bytes(self) -> int:
        """Return 0: such networks count live tensors alone."""
        return 0
