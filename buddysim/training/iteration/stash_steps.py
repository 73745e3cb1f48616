"""Adds to a program what its plan decides about feature maps between forward and backward use.

Steps of their own encode and decode feature maps while the program is built. Copies, and the host's work on them, are
added once all steps exist.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from buddysim.training.iteration.plan import Plan
from buddysim.training.iteration.prefetch import launches
from buddysim.training.iteration.program import CopyTiming, Direction, copy_ps
from buddysim.training.iteration.program_builder import ProgramBuilder, StepBuilder
from buddysim.training.iteration.stash import Encoding, Offload, Stash
from buddysim.training.networks.graph import Layer, Network

if TYPE_CHECKING:
    from buddysim.machine.training_table import HostLinkConfig


@dataclass
class _OffloadedMap:
    """An offloaded feature map: the copied structure, its reading layer, its copy and the host's encoding."""

    owner: int
    name: str
    layer: int
    byte_count: int
    decision: Offload
    offload_task: int = -1
    made: tuple[int, ...] = ()
    reading: int = -1


@dataclass
class StashSteps:
    """The stashes of one program.

    Attributes
    ----------
    map_bytes : of each layer's output
    stashes : stash by owner, for the feature maps that a backward step reads
    """

    network: Network
    map_bytes: Sequence[int]
    plan: Plan
    link: HostLinkConfig
    builder: ProgramBuilder
    stashes: dict[int, Stash] = field(init=False)
    _encoded: bool = field(init=False)  # whether any feature map is
    _ready: set[int] = field(init=False, default_factory=set)  # owners of feature maps that have been decoded
    _offloaded: list[_OffloadedMap] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        owners = set(self.network.buffers)
        for owner in self.plan.stash:
            if owner not in owners:
                raise ValueError(
                    f"stash of layer {owner}: no feature map of its own: expected a layer that owns a buffer"
                )
        read = _read_backward(self.network, self.plan)
        self.stashes = {owner: stash for owner, stash in self.plan.stash.items() if owner in read}
        self._encoded = any(stash.encoding is not None for stash in self.stashes.values())

    # Around a layer's forward step.

    def before_forward(self, layer: Layer) -> None:
        """Encodes the feature maps whose copies overlap with the layer's forward step."""
        if not self._encoded:
            return
        for owner in self._leaving(layer):
            encoding = self.stashes[owner].encoding
            if encoding is not None and self._overlaps(layer, owner):
                self._encode(owner, encoding)

    def after_forward(self, layer: Layer, step: StepBuilder) -> None:
        """Encodes the other feature maps that the layer is the last to use, and launches the copies to the host."""
        for owner in self._leaving(layer):
            encoding, overlapped = self.stashes[owner].encoding, self._overlaps(layer, owner)
            launching = step
            if encoding is not None and not overlapped:
                launching = self._encode(owner, encoding)
            if self.stashes[owner].offload is not None:
                self._launch(layer, owner, launching, "overlapped" if overlapped else "after")

    def _leaving(self, layer: Layer) -> Iterator[int]:
        """Owners of the feature maps with a stash that the layer is the last to use in the forward pass, X before Y."""
        if not self.stashes:
            return
        own = self.network.buffer_of(layer.index)
        for owner in dict.fromkeys((*self.network.input_buffers(layer.index), own)):
            if owner in self.stashes and self.network.last_consumer(owner) == layer.index:
                yield owner

    def _overlaps(self, layer: Layer, owner: int) -> bool:
        """Whether a feature map is copied during the layer's forward step; the layer's own output cannot be."""
        is_copied = self.stashes[owner].offload is not None and self.plan.overlap
        return is_copied and owner != self.network.buffer_of(layer.index)

    def _encode(self, owner: int, encoding: Encoding) -> StepBuilder:
        layer = self.network.layers[owner]
        step = self.builder.step(layer, "encode", encoding.encode_ps)
        self.builder.use(step, "y", layer, self.map_bytes[owner])
        self.builder.use(step, "code", layer, encoding.byte_count, defines=True)
        return step

    def _launch(self, layer: Layer, owner: int, step: StepBuilder, timing: CopyTiming) -> None:
        stash = self.stashes[owner]
        encoding, decision = stash.encoding, stash.offload
        assert decision is not None
        name, byte_count = ("y", self.map_bytes[owner]) if encoding is None else ("code", encoding.byte_count)
        offloaded = _OffloadedMap(owner, name, layer.index, byte_count, decision)
        offloaded.offload_task = self._copy(offloaded, step, "offload", timing, step.index, pins=byte_count)
        host = decision.host_encoding
        if host is not None:
            made = self.builder.task(
                step, "host", layer.index, timing, self.map_bytes[owner], 0, host.encode_ps, step.index,
                after=(offloaded.offload_task,), pins=host.byte_count, unpins=byte_count,
            )  # fmt: skip
            offloaded.made = (made,)
        self._offloaded.append(offloaded)

    # Before a step that reads feature maps again.

    def structure(self, owner: int) -> str:
        """The structure that a backward step reads, or keeps: an encoded feature map that nothing decoded stays so."""
        stash = self.stashes.get(owner)
        return "y" if stash is None or stash.encoding is None or owner in self._ready else "code"

    def before_reading(self, owners: list[int]) -> None:
        """Decode the feature maps that are still encoded."""
        if not self._encoded:
            return
        for owner in owners:
            stash = self.stashes.get(owner)
            if stash is None or stash.encoding is None or not stash.decode_before_use or owner in self._ready:
                continue
            layer = self.network.layers[owner]
            step = self.builder.step(layer, "decode", stash.encoding.decode_ps)
            self.builder.use(step, "code", layer, stash.encoding.byte_count)
            self.builder.use(step, "y", layer, self.map_bytes[owner], defines=True)
            self._ready.add(owner)

    # Once all steps exist.

    def add_prefetches(self, first_backward: int) -> None:
        """Adds the copies back, and what later steps wait for."""
        leading = _leading(self.builder.steps)
        for offloaded in self._offloaded:
            offloaded.reading = self.builder.first_use(offloaded.name, offloaded.owner, first_backward)
            self._wait_later(offloaded, first_backward)
        by_rule: dict[int, list[_OffloadedMap]] = {}
        for offloaded in self._offloaded:
            if offloaded.decision.prefetch_launch is None:
                by_rule.setdefault(offloaded.layer, []).append(offloaded)
        first_reads = {layer: min(offloaded.reading for offloaded in group) for layer, group in by_rule.items()}
        layers = self.network.layers
        for number, layer in launches(self.plan.prefetch, layers, leading, first_backward, first_reads):
            for offloaded in by_rule[layer]:
                self._fetch(offloaded, number, number)
        for offloaded in self._offloaded:
            if offloaded.decision.prefetch_launch is not None:
                number = _first(leading, offloaded.decision.prefetch_launch, first_backward)
                self._fetch(offloaded, min(number, offloaded.reading), max(number, offloaded.reading - 1))

    def _wait_later(self, offloaded: _OffloadedMap, first_backward: int) -> None:
        """Moves the wait for a copy to the host, and for the host's work, to the steps that the plan names."""
        offload, decision = self.builder.tasks[offloaded.offload_task], offloaded.decision
        until = self._forward_step(decision.offload_deadline, offload.until, first_backward)
        self.builder.tasks[offloaded.offload_task] = offload._replace(until=until.index)
        if until.index != offload.until:
            owner = self.network.layers[offloaded.owner]
            self.builder.use(until, offloaded.name, owner, offloaded.byte_count)
        for number in offloaded.made:
            step = self._forward_step(decision.host_encoding_deadline, until.index, first_backward)
            self.builder.tasks[number] = self.builder.tasks[number]._replace(until=step.index)

    def _forward_step(self, layer: int | None, least: int, first_backward: int) -> StepBuilder:
        """The forward step of a layer; None: the step `least`, which no other may precede."""
        if layer is None:
            return self.builder.steps[least]
        for step in self.builder.steps[least:first_backward]:
            if step.layer == layer and step.pass_ == "forward":
                return step
        raise ValueError(f"layer {layer} doesn't run forward after step {least}: expected one that does")

    def _fetch(self, offloaded: _OffloadedMap, number: int, until: int) -> None:
        step, host = self.builder.steps[number], offloaded.decision.host_encoding
        timing: CopyTiming = "overlapped" if number < offloaded.reading and self.plan.overlap else "before"
        until = number if timing == "before" else until
        before: tuple[int, ...] = (offloaded.offload_task,)
        if host is not None:
            undone = self.builder.task(
                step, "host", offloaded.layer, timing, self.map_bytes[offloaded.owner], 0, host.decode_ps, until,
                after=offloaded.made, pins=offloaded.byte_count, unpins=host.byte_count,
            )  # fmt: skip
            before = (undone,)
        task = self._copy(offloaded, step, "prefetch", timing, until, after=before, unpins=offloaded.byte_count)
        owner = self.network.layers[offloaded.owner]
        self.builder.use(step, offloaded.name, owner, offloaded.byte_count, defines=True)
        self.builder.copies(step, offloaded.name, offloaded.owner, task)

    def _copy(
        self, offloaded: _OffloadedMap, step: StepBuilder, direction: Direction, timing: CopyTiming, until: int, *,
        after: tuple[int, ...] = (), pins: int = 0, unpins: int = 0,
    ) -> int:  # fmt: skip
        decision = offloaded.decision
        moved = offloaded.byte_count if decision.link_bytes is None else decision.link_bytes
        duration = decision.offload_ps if direction == "offload" else decision.prefetch_ps
        if duration is None:
            duration = link_ps(self.link, direction, moved)
        task = self.builder.task(
            step, direction, offloaded.layer, timing, self.map_bytes[offloaded.owner], moved, duration, until,
            after=after, pins=pins, unpins=unpins,
        )  # fmt: skip
        if direction == "offload":
            owner = self.network.layers[offloaded.owner]
            self.builder.use(step, offloaded.name, owner, offloaded.byte_count)
            self.builder.copies(step, offloaded.name, offloaded.owner, task)
        return task


def link_ps(link: HostLinkConfig, direction: Direction, byte_count: int) -> int:
    """Return the time of a copy of a number of bytes."""
    rate = link.offload_bytes_per_s if direction == "offload" else link.prefetch_bytes_per_s
    return copy_ps(byte_count, rate, link.latency_ps)


def _first(leading: list[int | None], layer: int, since: int) -> int:
    """The step that begins a layer's part of the backward pass."""
    if layer not in leading[since:]:
        raise ValueError(f"layer {layer} has no backward step: expected one that launches a copy")
    return leading.index(layer, since)


def _leading(steps: list[StepBuilder]) -> list[int | None]:
    """The layer of each step that begins a pass of a layer; None for every other step, which launches nothing."""
    layers: list[int | None] = []
    before: tuple[int, str] | None = None
    for step in steps:
        begins = step.pass_ in ("forward", "recompute", "backward") and (step.layer, step.pass_) != before
        layers.append(step.layer if begins else None)
        if begins:
            before = step.layer, step.pass_
    return layers


def _read_backward(network: Network, plan: Plan) -> set[int]:
    """Owners of the feature maps that are read in the backward pass as the forward pass left them."""
    read: set[int] = set()
    for layer in network.layers[1:]:
        reads = plan.backward_reads.get(layer.index, layer.backward_reads)
        if "x" in reads:
            read |= {network.buffer_of(producer) for producer in network.saved_inputs(layer.index)}
        if "y" in reads:
            read.add(network.buffer_of(layer.index))
    for first, last in plan.segments:
        inside = network.layers[first : last + 1]
        read = {owner for owner in read if not first <= owner <= last}
        read |= {network.buffer_of(p) for layer in inside for p in layer.inputs if network.buffer_of(p) < first}
    return read
