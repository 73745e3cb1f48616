"""The network of a captured script: one of its iterations, at the captured batch or at another one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from buddysim.base.errors import BuddysimError
from buddysim.formats.operator_graph import OperatorGraph, load_operators
from buddysim.training.networks.captured.other_batch import OtherBatch
from buddysim.training.networks.captured.tape import tape_of_graph
from buddysim.training.networks.graph import Layer, Network, Value
from buddysim.training.networks.recorded.captured_step import CapturedStep
from buddysim.training.networks.recorded.from_tape import network_from_tape
from buddysim.training.networks.recorded.network import RecordedNetwork

#: By the least state of an optimizer over the weights.
_OPTIMIZERS = ((1.5, "adamw"), (0.5, "momentum"), (0.0, "sgd"))
_FORMATS = {"bfloat16": "bf16", "float16": "fp16"}


def read_operator_network(path: str | os.PathLike[str]) -> CapturedNetwork:
    """Return the network of a file that a capture wrote."""
    path = Path(path)
    name = path.name.removesuffix(".json").removesuffix(".graph")
    try:
        return CapturedNetwork(load_operators(path), name)
    except BuddysimError as error:
        text = str(error)
        raise error if text.startswith(str(path)) else BuddysimError(f"{path}: {error}") from None


class CapturedNetwork(Network):
    """A captured training.

    Parameters
    ----------
    graph : one iteration
    name : of the network
    """

    recorded = True

    def __init__(self, graph: OperatorGraph, name: str) -> None:
        self.graph, self.name = graph, name
        if not any(one.kind == "compute" and one.phase == "forward" for one in graph.operators):
            raise BuddysimError("operator graph: no operator of a forward pass: expected a captured training iteration")
        self.source = f"operators of iteration {graph.iteration} of a captured training"
        self.description = f"captured with a batch of {graph.batch or 'unknown size'}"
        self.precision = _precision(graph)
        self._at: RecordedNetwork | None = None

    @property
    def captured_batch(self) -> int:
        """Samples of the captured batch; 1 where the capture doesn't know how many."""
        return self.graph.batch or 1

    @cached_property
    def options(self) -> Mapping[str, Value]:  # type: ignore[override]
        """What the script decides, as far as schemes need to know."""
        named = self.graph.provenance.get("optimizer", "")
        return {"backward_passes": _backward_passes(self.graph), "optimizer": named or "of the script"}

    @cached_property
    def _step(self) -> CapturedStep:
        fixed = (n for n, one in enumerate(self.graph.storages) if one.doubled in (None, one.bytes))
        assumed = self.graph.provenance.get("by_extents", "")
        return CapturedStep(self.captured_batch, self.graph.peak_bytes, frozenset(fixed), assumed)

    @cached_property
    def optimizer(self) -> str:
        """The optimizer of `optimizers` with as much state for each weight: whoever updates on the host moves that."""
        size: dict[str, int] = {}
        for one in self.graph.storages:
            size[one.role] = size.get(one.role, 0) + one.bytes
        states = size.get("optimizer", 0) / max(1, size.get("weight", 0))
        return next(name for least, name in _OPTIMIZERS if states >= least)

    @property
    def layers(self) -> tuple[Layer, ...]:  # type: ignore[override]
        """The layers of the captured batch."""
        return self.at(self.captured_batch).layers

    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of each weight by its name."""
        shapes: dict[str, tuple[int, ...]] = {}
        for tensor in self.graph.tensors:
            storage = self.graph.storages[tensor.storage]
            if storage.role == "weight":
                shapes.setdefault(storage.name.removeprefix("weight: "), tensor.shape)
        return shapes

    def with_element_bytes(self, element_bytes: int) -> Network:
        """Return the network itself: its tensors have their own formats."""
        return self

    def at(self, batch: int, optimizer: str = "none") -> RecordedNetwork:
        """Return the layers of the iteration and its record; the optimizer is the script's.

        Raises
        ------
        BuddysimError
            another batch than the captured one, where the capture doesn't know how many samples that has
        """
        if self._at is None or self._at.batch != batch:
            if not self.graph.batch and batch != 1:
                raise BuddysimError(
                    f"batch {batch}: the capture of {self.name} doesn't know its batch: expected a capture with --batch"
                )
            tape = tape_of_graph(self.graph, OtherBatch(self.captured_batch, batch))
            self._at = network_from_tape(
                *(tape, self.name, batch, self.precision, self.source, self.description),
                options=self.options,
                parameter_shapes=self.parameter_shapes(),
                captured=self._step,
            )
        return self._at


def _precision(graph: OperatorGraph) -> str:
    """The number format of most of the products' FLOPs."""
    flops: dict[str, int] = {}
    for operator in graph.operators:
        if operator.flops and operator.inputs:
            dtype = graph.tensors[operator.inputs[-1]].dtype
            flops[dtype] = flops.get(dtype, 0) + operator.flops
    return _FORMATS.get(max(flops, key=lambda one: flops[one], default=""), "fp32")


def _backward_passes(graph: OperatorGraph) -> int:
    """How often a backward pass follows a forward one."""
    phases = [one.phase for one in graph.operators if one.kind == "compute" and one.phase != "optimizer"]
    return max(1, sum(one == "forward" and two == "backward" for one, two in pairwise(phases)))
