"""Makes a network of a recorded step: a layer for each run of operations of a module.

A layer's output is every storage that it allocates and later layers read. Of what autograd saves in a layer, its own
output counts as Y, those of other layers as X, and all else (copies, statistics, inner results) as saved state. What
lives during one pass alone are temporaries: the peak of a pass above what lives before it and what it leaves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from buddysim.training.autograd.records import AllocationEvent, FreeEvent, StorageRecord, TracedOperation
from buddysim.training.autograd.tape import Tape
from buddysim.training.networks.graph import Shape
from buddysim.training.networks.recorded.captured_step import CapturedStep
from buddysim.training.networks.recorded.layer import KIND, RecordedLayer
from buddysim.training.networks.recorded.network import RecordedNetwork, RecordWith
from buddysim.training.networks.recorded.runs import Run, runs_of
from buddysim.training.networks.recorded.work import work_of

#: Kinds of storages that live before the first operation.
LASTING = ("parameter", "buffer", "optimizer")


def network_from_tape(
    tape: Tape,
    name: str,
    batch: int,
    precision: str,
    source: str = "",
    description: str = "",
    options: Mapping[str, Any] | None = None,
    parameter_shapes: Mapping[str, Shape] | None = None,
    blocks: int = 0,
    record_with: RecordWith | None = None,
    captured: CapturedStep | None = None,
) -> RecordedNetwork:
    """Return the network of a tape with one training step.

    Parameters
    ----------
    name, source, description : of the network
    batch : samples of the step
    precision : number format of its matrix products
    options : what the model's configuration leaves open, for provenance
    parameter_shapes : shape of each weight, by its name in the state dict
    blocks, record_with, captured : see `RecordedNetwork`
    """
    runs = runs_of(tape)
    uses = _Uses.of(_first_micro_step(tape) if captured else tape, runs)
    layers = [_input_layer(tape, batch)]
    for run in runs:
        layers.append(_layer(run, uses, layers, batch))
    _mark_classifier(layers, runs, tape)
    return RecordedNetwork(
        name, layers, source, description,
        tape=tape, runs=runs, batch=batch, precision=precision, options=options, parameter_shapes=parameter_shapes,
        blocks=blocks, record_with=record_with, captured=captured,
    )  # fmt: skip


def _first_micro_step(tape: Tape) -> Tape:
    """The tape up to the second micro-step: the layers are those of the first one."""
    later = (n for n, one in enumerate(tape.events) if isinstance(one, TracedOperation) and one.micro_step)
    first = copy(tape)
    first.events = tape.events[: next(later, None)]
    return first


@dataclass
class _Uses:
    """Who allocates, reads and saves each storage; a run is named by its layer's index, from 1 on.

    Attributes
    ----------
    producer : layer that allocates a storage in its forward operations; 0 for the batch
    readers : layers whose forward operations read a storage
    saved : storages that autograd saves, by layer
    written : storages by the layer that allocates them
    owned : parameters by the layer that reads them first
    temporaries : of the forward and of the backward pass, by layer
    """

    tape: Tape
    producer: dict[int, int]
    readers: dict[int, list[int]]
    saved: dict[int, list[int]]
    written: dict[int, list[int]]
    owned: dict[int, list[int]]
    temporaries: tuple[list[int], list[int]]

    @classmethod
    def of(cls, tape: Tape, runs: Sequence[Run]) -> _Uses:
        layer_of = {one.index: run.index + 1 for run in runs for one in (*run.forward, *run.backward)}
        producer: dict[int, int] = {}
        readers: dict[int, list[int]] = defaultdict(list)
        owner: dict[int, int] = {}
        for run in runs:
            for operation in run.forward:
                for operand in operation.reads:
                    if not readers[operand.storage] or readers[operand.storage][-1] != run.index + 1:
                        readers[operand.storage].append(run.index + 1)
                    if tape.storages[operand.storage].kind == "parameter":
                        owner.setdefault(operand.storage, run.index + 1)
        following = _following_layers(tape, layer_of)
        for record in tape.storages:
            if record.kind == "input":
                producer[record.number] = 0
            elif record.phase == "forward" and record.number in following:
                producer[record.number] = following[record.number]
        saved: dict[int, list[int]] = defaultdict(list)
        for one in tape.saved:
            layer = layer_of.get(one.operation)
            if layer is not None and one.storage not in saved[layer]:
                saved[layer].append(one.storage)
        temporaries = _temporaries(tape, layer_of, len(runs))
        return cls(tape, producer, readers, saved, _inverted(producer), _inverted(owner), temporaries)


def _inverted(layers: Mapping[int, int]) -> dict[int, list[int]]:
    """Storages by layer."""
    storages: dict[int, list[int]] = defaultdict(list)
    for number, layer in layers.items():
        storages[layer].append(number)
    return storages


def _read_later(readers: Iterable[int], producer: int) -> bool:
    return any(reader > producer for reader in readers)


def _following_layers(tape: Tape, layer_of: Mapping[int, int]) -> dict[int, int]:
    """The layer of the next operation after each storage's allocation: the one that allocates it."""
    following: dict[int, int] = {}
    layer = 0
    for event in reversed(tape.events):
        if isinstance(event, TracedOperation):
            layer = layer_of.get(event.index, layer)
        elif isinstance(event, AllocationEvent):
            following[event.storage] = layer
    return following


def _temporaries(tape: Tape, layer_of: Mapping[int, int], runs: int) -> tuple[list[int], list[int]]:
    """By how much what lives during a pass exceeds what lives before it and what it leaves, by layer: both passes."""
    following = _following_layers(tape, layer_of)
    peaks = {"forward": [0] * (runs + 1), "backward": [0] * (runs + 1)}
    live = peak = before = 0
    current: tuple[str, int] = ("", 0)
    left: dict[int, int] = {}

    def close() -> None:
        if current[0] in peaks:
            here = peaks[current[0]]
            here[current[1]] = max(here[current[1]], peak - before - sum(left.values()))

    for event in tape.events:
        if isinstance(event, FreeEvent):
            live -= event.bytes
            left.pop(event.storage, None)
            continue
        if isinstance(event, TracedOperation):
            stretch = event.phase, layer_of.get(event.index, current[1])
        else:
            stretch = tape.storages[event.storage].phase, following.get(event.storage, current[1])
        if stretch != current:
            close()
            current, peak, before, left = stretch, live, live, {}
        if isinstance(event, AllocationEvent):
            live += event.bytes
            left[event.storage] = event.bytes
            peak = max(peak, live)
    close()
    return peaks["forward"], peaks["backward"]


def _input_layer(tape: Tape, batch: int) -> RecordedLayer:
    inputs = [record for record in tape.storages if record.kind == "input"]
    size = sum(record.bytes for record in inputs)
    return RecordedLayer(
        0, "input", "input", (), (max(1, size // 8 // batch),), element_bytes=8, output_bytes=size, has_gradient=False
    )


def _layer(run: Run, uses: _Uses, earlier: Sequence[RecordedLayer], batch: int) -> RecordedLayer:
    index, storages = run.index + 1, uses.tape.storages
    read = dict.fromkeys(operand.storage for one in run.forward for operand in one.reads)
    inputs = tuple(sorted({uses.producer[number] for number in read if uses.producer.get(number, index) != index})) or (
        0,
    )
    written = uses.written[index]
    output = [number for number in written if _read_later(uses.readers[number], index)]
    saved = [storages[number] for number in uses.saved[index]]
    of_others = [record for record in saved if uses.producer.get(record.number, index) not in (index, 0)]
    own = [record for record in saved if uses.producer.get(record.number) == index]
    saved_inputs = tuple(sorted({uses.producer[record.number] for record in of_others}))
    private = sum(record.bytes for record in own if record.number not in output)
    parameters = [storages[number] for number in uses.owned[index]]
    sizes = _element_sizes(run.forward)
    reads = {"dy", *(["x"] if saved_inputs else []), *(["y"] if any(one.number in output for one in own) else [])}
    has_gradient = bool(run.backward or saved) or any(earlier[one].has_gradient for one in inputs)
    return RecordedLayer(
        index,
        run.name,
        KIND,
        inputs,
        _shape(run, output, storages, batch),
        parameters=sum(record.bytes // sizes.get(record.number, 4) for record in parameters),
        backward_reads=frozenset(reads),
        flops=sum(one.flops for one in run.forward),
        saved_fixed_bytes=private,
        element_bytes=_width(run, output),
        output_bytes=sum(storages[number].bytes for number in output),
        outputs=tuple((storages[number].producer, storages[number].bytes) for number in output),
        weight_bytes=sum(record.bytes for record in parameters),
        saved_inputs=saved_inputs,
        saved_weight_bytes=sum(record.bytes for record in saved if record.kind in LASTING),
        has_gradient=has_gradient,
        forward_temporary_bytes=uses.temporaries[0][index],
        backward_temporary_bytes=uses.temporaries[1][index],
        forward_work=tuple(work_of(one, uses.tape.compiled) for one in run.forward),
        backward_work=tuple(work_of(one, uses.tape.compiled) for one in run.backward),
    )


def _element_sizes(operations: Iterable[TracedOperation]) -> dict[int, int]:
    return {operand.storage: operand.dtype.size for one in operations for operand in one.reads}


def _width(run: Run, output: Sequence[int]) -> int:
    """Bytes of an element of the last tensor that later layers read."""
    widths = [operand.dtype.size for one in run.forward for operand in one.writes if operand.storage in output]
    return widths[-1] if widths else 4


def _shape(run: Run, output: Sequence[int], storages: Sequence[StorageRecord], batch: int) -> Shape:
    """The shape of one sample of the last tensor that later layers read; else of the last one that is written."""
    written = [operand for one in run.forward for operand in one.writes]
    shown = [operand for operand in written if operand.storage in output] or written
    if not shown:
        return (1,)
    shape = shown[-1].shape
    if shape and shape[0] == batch:
        return shape[1:] or (1,)
    if shape and shape[0] % batch == 0:
        return (shape[0] // batch, *shape[1:])
    return (max(1, prod(shape) // batch),)


def _mark_classifier(layers: list[RecordedLayer], runs: Sequence[Run], tape: Tape) -> None:
    """The layers from the last product with a weight on close the network: they are no feature layers.

    The weight may be an embedding's.
    """
    with_weights = [
        run.index + 1
        for run in runs
        for one in run.forward
        if one.products and any(tape.storages[read.storage].kind in ("parameter", "gathered") for read in one.reads)
    ]
    last = max(with_weights, default=0)
    for layer in layers[last:] if last else ():
        layers[layer.index] = replace(layer, part="classifier")
