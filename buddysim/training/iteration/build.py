"""Makes the steps of one training iteration from a network and a plan.

First the maps that every step reads, writes or defines are noted; then offloads and prefetches are added, which define
maps anew; then lives follow from the uses: a tensor is allocated at the step that defines it (computed, brought back,
computed once more) and released with the last step that uses it before it is defined anew, or for good.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from buddysim.training.iteration.plan import Direction, Plan
from buddysim.training.iteration.prefetch import launches
from buddysim.training.iteration.program import Copy, Kind, Pass, Program, Step, Tensor, Timing, copy_ps
from buddysim.training.networks.graph import Layer, Network

if TYPE_CHECKING:
    from buddysim.machine.training_table import LinkRate
    from buddysim.training.cost import CostModel


def build(network: Network, batch: int, cost: CostModel, plan: Plan, link: LinkRate) -> Program:
    """The iteration that `plan` describes, on a link with the rates of `link`."""
    return _Builder(network, batch, cost, plan, link).program()


_Map = tuple[str, int]  # ("y" | "dy" | "saved", owning layer): a data structure through all its lives


@dataclass
class _Draft:
    """A step while its copies and tensors are still being added; the attributes are those of `Step`."""

    index: int
    layer: int
    pass_: Pass
    compute_ps: int
    part: str
    workspace_bytes: int
    copies: list[int] = field(default_factory=list)
    allocate: list[int] = field(default_factory=list)
    release: list[int] = field(default_factory=list)
    reads: list[int] = field(default_factory=list)
    writes: list[int] = field(default_factory=list)
    workspace: int | None = None

    def step(self) -> Step:
        """The step as it is now."""
        return Step(
            self.index,
            self.layer,
            self.pass_,
            self.compute_ps,
            self.part,
            self.workspace_bytes,
            tuple(self.copies),
            tuple(self.allocate),
            tuple(self.release),
            tuple(self.reads),
            tuple(self.writes),
            self.workspace,
        )


class _Builder:
    def __init__(self, network: Network, batch: int, cost: CostModel, plan: Plan, link: LinkRate) -> None:
        self.network, self.batch, self.cost, self.plan, self.link = network, batch, cost, plan, link
        self.layers = network.layers
        self.steps: list[_Draft] = []
        self.tensors: list[Tensor] = []
        self.copies: list[Copy] = []
        self.resident: list[int] = []
        self.uses: dict[_Map, list[tuple[int, bool, bool]]] = {}  # step, defines?, writes?
        self.copied: dict[tuple[int, int], int] = {}  # (step of launch, owner) -> the copy of the owner's map
        self.extra: list[tuple[_Draft, int, Kind]] = []  # a copy whose tensor lives for this step only

    def program(self) -> Program:
        self._resident_tensors()
        self._forward()
        first_backward = len(self.steps)
        self._backward()
        if self.plan.layerwise:
            self._offloads_and_prefetches(first_backward)
            self._lives()
        else:
            self._network_wide()
        steps = tuple(draft.step() for draft in self.steps)
        return Program(steps, tuple(self.tensors), tuple(self.copies), tuple(self.resident))

    # What a layer reads and writes.

    def _owners(self, producers: Iterable[int]) -> list[int]:
        return list(dict.fromkeys(self.network.buffer_of(producer) for producer in producers))

    def _needs(self, layer: Layer) -> frozenset[str]:
        return self.plan.saves.get(layer.index, layer.needs)

    def _saved_bytes(self, layer: Layer) -> int:
        return self.plan.saved_bytes.get(layer.index, layer.saved_bytes(self.batch))

    def _map_bytes(self, owner: int) -> int:
        return self.network.output_bytes(owner, self.batch)

    def _use(self, step: _Draft, name: str, owner: int, *, defines: bool = False, writes: bool = False) -> None:
        self.uses.setdefault((name, owner), []).append((step.index, defines, defines or writes))

    def _tensor(self, layer: int, kind: Kind, byte_count: int) -> int:
        self.tensors.append(Tensor(len(self.tensors), layer, kind, byte_count, self.layers[layer].part))
        return len(self.tensors) - 1

    # The steps.

    def _resident_tensors(self) -> None:
        kinds: tuple[Kind, ...] = ("weights", "weight_gradients")
        for layer in self.layers:
            if layer.parameters:
                byte_count = self.network.layer_parameter_bytes(layer.index)
                self.resident += [self._tensor(layer.index, kind, byte_count) for kind in kinds]

    def _step(self, layer: Layer, pass_: Pass, compute_ps: int, workspace: int) -> _Draft:
        step = _Draft(len(self.steps), layer.index, pass_, compute_ps, layer.part, workspace)
        self.steps.append(step)
        return step

    def _forward_step(self, layer: Layer, pass_: Pass = "forward") -> None:
        chosen = self.plan.algorithms.get(layer.index)
        if layer.kind == "input":
            step = self._step(layer, pass_, 0, 0)
        elif chosen:
            step = self._step(layer, pass_, chosen["forward"].time_ps, chosen["forward"].workspace_bytes)
        else:
            step = self._step(layer, pass_, self.cost.time_ps(layer, self.batch, "forward"), 0)
        own = self.network.buffer_of(layer.index)
        for owner in self._owners(layer.inputs):
            if owner != own:
                self._use(step, "y", owner)
        self._use(step, "y", own, defines=not layer.in_place, writes=True)
        if self._saved_bytes(layer):
            self._use(step, "saved", layer.index, defines=True)
        for name, byte_count in self.plan.offload_saved.get(layer.index, ()):
            copy = self._copy(step, "offload", layer.index, "after", byte_count, layer.index)
            if name == "state":  # it is made by this step and lives on the host from then on
                self.extra.append((step, copy.number, "feature_maps"))

    def _backward_step(self, layer: Layer) -> None:
        own = self.network.buffer_of(layer.index)
        gradient_owners = [owner for owner in self._owners(layer.inputs) if self.layers[owner].kind != "input"]
        chosen = self.plan.algorithms.get(layer.index)
        if chosen:
            passes = [chosen["backward_filter"], *([chosen["backward_data"]] if gradient_owners else [])]
            compute_ps = sum(algorithm.time_ps for algorithm in passes)
            workspace = max(algorithm.workspace_bytes for algorithm in passes)
            step = self._step(layer, "backward", compute_ps, workspace)
        else:
            step = self._step(layer, "backward", self.cost.time_ps(layer, self.batch, "backward"), 0)
        needs = self._needs(layer)
        if "x" in needs:
            for owner in self._owners(layer.inputs):
                self._use(step, "y", owner)
        if "y" in needs:
            self._use(step, "y", own)
        if self._saved_bytes(layer):
            self._use(step, "saved", layer.index)
        first = ("dy", own) not in self.uses
        self._use(step, "dy", own, defines=first)
        for owner in gradient_owners:
            if owner != own:
                self._use(step, "dy", owner, defines=("dy", owner) not in self.uses, writes=True)
        for name, byte_count in self.plan.offload_saved.get(layer.index, ()):
            copy = self._copy(step, "prefetch", layer.index, "before", byte_count, layer.index)
            self.extra.append((step, copy.number, "weights" if name == "weights" else "feature_maps"))

    def _forward(self) -> None:
        for layer in self.layers:
            self._forward_step(layer)

    def _backward(self) -> None:
        firsts = {last: first for first, last in self.plan.segments}
        lasts = dict(self.plan.segments)
        for layer in reversed(self.layers[1:]):
            if layer.index in firsts:
                self._recompute(firsts[layer.index], layer.index)
            self._backward_step(layer)
            if layer.index in lasts:
                self._hold_inputs(layer.index, lasts[layer.index])

    def _hold_inputs(self, first: int, last: int) -> None:
        """Keeps a segment's inputs until its backward steps are over, as `torch.utils.checkpoint` does."""
        inside = self.layers[first : last + 1]
        for owner in self._owners(producer for layer in inside for producer in layer.inputs):
            if owner < first:
                self._use(self.steps[-1], "y", owner)

    def _recompute(self, first: int, last: int) -> None:
        """Runs a segment forward again, up to the last layer whose output or saved state its backward steps read."""
        wanted = first - 1
        for layer in self.layers[first : last + 1]:
            if "y" in self._needs(layer) or self._saved_bytes(layer):
                wanted = max(wanted, layer.index)
            if "x" in self._needs(layer):
                wanted = max(wanted, *layer.inputs)
        for layer in self.layers[first : min(wanted, last) + 1]:
            self._forward_step(layer, "recompute")

    # Copies.

    def _copy(
        self, step: _Draft, direction: Direction, layer: int, timing: Timing, byte_count: int, writer: int
    ) -> Copy:
        rate = self.link.offload_bytes_per_s if direction == "offload" else self.link.prefetch_bytes_per_s
        moved = byte_count
        duration = copy_ps(byte_count, rate, self.link.latency_ps)
        if self.plan.compression is not None:
            moved = self.plan.compression.moved_bytes(byte_count, writer)
            duration = self.plan.compression.copy_ps(byte_count, writer, direction)
        self.copies.append(Copy(len(self.copies), direction, layer, -1, timing, byte_count, moved, duration))
        step.copies.append(len(self.copies) - 1)
        return self.copies[-1]

    def _offloads_and_prefetches(self, first_backward: int) -> None:
        moved = self._offloaded_maps(first_backward)
        forward = {step.layer: step for step in self.steps[:first_backward]}
        for index, owners in moved.items():
            for owner, writer in owners:
                timing: Timing = "overlapped" if self.plan.overlap else "after"
                copy = self._copy(forward[index], "offload", index, timing, self._map_bytes(owner), writer)
                self.copied[forward[index].index, owner] = copy.number
        reading = {owner: self._first_use(owner, first_backward) for owners in moved.values() for owner, _ in owners}
        wanted = {index: min(reading[owner] for owner, _ in owners) for index, owners in moved.items()}
        step_layers = [step.layer for step in self.steps]
        for number, index in launches(self.plan.prefetch, self.layers, step_layers, first_backward, wanted):
            step = self.steps[number]
            for owner, writer in moved[index]:
                timing = "overlapped" if number < reading[owner] and self.plan.overlap else "before"
                copy = self._copy(step, "prefetch", index, timing, self._map_bytes(owner), writer)
                self._use(step, "y", owner, defines=True)
                self.copied[step.index, owner] = copy.number

    def _first_use(self, owner: int, first_backward: int) -> int:
        return min(step for step, _, _ in self.uses["y", owner] if step >= first_backward)

    def _offloaded_maps(self, first_backward: int) -> dict[int, list[tuple[int, int]]]:
        """By layer whose X is offloaded: owner and last writer of each of its inputs that moves."""
        moved: dict[int, list[tuple[int, int]]] = {}
        for index in sorted(self.plan.offload):
            layer = self.layers[index]
            own = self.network.buffer_of(index)
            moving: list[tuple[int, int]] = []
            for producer in dict.fromkeys(layer.inputs):
                owner = self.network.buffer_of(producer)
                uses = [step for step, _, _ in self.uses["y", owner]]
                last_forward = max(step for step in uses if step < first_backward)
                is_last = self.steps[last_forward].layer == index
                if owner != own and is_last and max(uses) >= first_backward and owner not in dict(moving):
                    moving.append((owner, producer))
            if moving:
                moved[index] = moving
        return moved

    # Lives.

    def _lives(self) -> None:
        for step in self.steps:
            if step.workspace_bytes:
                step.workspace = self._tensor(step.layer, "workspace", step.workspace_bytes)
        for (name, owner), uses in self.uses.items():
            uses.sort(key=lambda use: (use[0], not use[1]))
            kind: Kind = "gradient_maps" if name == "dy" else "feature_maps"
            byte_count = self._saved_bytes(self.layers[owner]) if name == "saved" else self._map_bytes(owner)
            life: list[tuple[int, bool]] = []
            for used, defines, writes in uses:
                if defines and life and life[-1][0] != used:
                    self._live(name, owner, kind, byte_count, life)
                    life = []
                life.append((used, writes))
            self._live(name, owner, kind, byte_count, life)
        for step, copy, kind in self.extra:
            tensor = self._tensor(step.layer, kind, self.copies[copy].byte_count)
            self.copies[copy] = self.copies[copy]._replace(tensor=tensor)
            step.allocate.insert(0, tensor)
            step.release.append(tensor)
            step.reads.append(tensor)
        for step in self.steps:
            later = {self.copies[copy].tensor for copy in step.copies if self.copies[copy].timing == "overlapped"}
            step.allocate.sort(key=lambda tensor: tensor in later)
            if step.workspace is not None:
                step.allocate.append(step.workspace)
                step.release.append(step.workspace)

    def _live(self, name: str, owner: int, kind: Kind, byte_count: int, life: list[tuple[int, bool]]) -> None:
        tensor = self._tensor(owner, kind, byte_count)
        first, last = life[0][0], life[-1][0]
        self.steps[first].allocate.append(tensor)
        self.steps[last].release.append(tensor)
        for index, writes in life:
            step = self.steps[index]
            copy = self.copied.get((index, owner)) if name == "y" else None
            if copy is not None:
                self.copies[copy] = self.copies[copy]._replace(tensor=tensor)
            fetched = copy is not None and self.copies[copy].direction == "prefetch" and writes
            if not fetched:
                (step.writes if writes else step.reads).append(tensor)

    def _network_wide(self) -> None:
        """Everything lives throughout, gradient maps and workspace are shared (vDNN, Section II-C and Fig. 2)."""
        for owner in self.network.feature_maps:
            self.resident.append(self._tensor(owner, "feature_maps", self._map_bytes(owner)))
        for layer in self.layers:
            if self._saved_bytes(layer):
                self.resident.append(self._tensor(layer.index, "feature_maps", self._saved_bytes(layer)))
        largest = max(self.layers[1:], key=lambda layer: layer.output_elements)
        for _ in range(2):
            self.resident.append(self._tensor(largest.index, "gradient_maps", self._map_bytes(largest.index)))
        hungriest = max(self.steps, key=lambda step: step.workspace_bytes)
        if hungriest.workspace_bytes:
            self.resident.append(self._tensor(hungriest.layer, "workspace", hungriest.workspace_bytes))
