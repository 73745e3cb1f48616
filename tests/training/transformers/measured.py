"""Measures training steps in PyTorch: what autograd saves, and every storage from its allocation to its end.

Written apart from the package's own tracer, and run on real tensors: what the tests compare with.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from buddysim.training.networks.from_torch.below_autograd import Proceed, below_autograd

Phase = Literal["forward", "backward", "optimizer"]


@dataclass(frozen=True)
class SavedTensor:
    """A tensor that a node of the graph saves.

    Attributes
    ----------
    node : of the graph, ``"MmBackward0"``
    name : in the node's formula, ``"mat2"``
    producer : operator that returned it, or ``"parameter"``, ``"buffer"``, ``"input"``
    storage : number of its storage, in the order in which they were first seen
    storage_producer : operator that allocated the storage
    """

    node: str
    name: str
    shape: tuple[int, ...]
    dtype: str
    producer: str
    storage: int
    storage_producer: str


@dataclass(frozen=True)
class Event:
    """A storage is allocated or freed.

    Attributes
    ----------
    operator : that allocates; of a free: the last one that ran before
    """

    kind: Literal["alloc", "free"]
    step: int
    phase: Phase
    operator: str
    bytes: int
    storage: int


@dataclass
class Measured:
    """Steps as PyTorch ran them.

    Attributes
    ----------
    saved : of each step, in the order of the graph's sequence numbers
    held_bytes : of weights, buffers and inputs, before the first step
    """

    saved: list[list[SavedTensor]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    held_bytes: int = 0

    def curve(self, step: int | None = None) -> list[int]:
        """Live bytes after each event, of one step or of all."""
        live, levels = self.held_bytes, []
        for event in self.events:
            live += event.bytes if event.kind == "alloc" else -event.bytes
            if step is None or event.step == step:
                levels.append(live)
        return levels

    def saved_bytes(self, step: int = 0) -> int:
        """Bytes of what a step saves: each storage once, without weights, buffers and inputs."""
        sizes = {event.storage: event.bytes for event in self.events if event.kind == "alloc"}
        return sum(sizes.get(storage, 0) for storage in {one.storage for one in self.saved[step]})


class _Watch:
    """Numbers every storage that operators return, and notes its end."""

    def __init__(self, measured: Measured) -> None:
        self.measured = measured
        self.step, self.operator = 0, ""
        self.phase: Phase = "forward"
        self.done = False
        self.numbers: dict[int, int] = {}
        self.allocators: list[str] = []
        self.producers: dict[tuple[Any, ...], str] = {}
        self.host: dict[int, Any] = {}  # kept, so that no storage gets the address of another
        self._references: list[Any] = []

    def number(self, tensor: torch.Tensor, role: str | None = None) -> int:
        """The number of a tensor's storage; a new one is allocated by the operator that runs, or has a `role`."""
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key not in self.numbers:
            number = self.numbers[key] = len(self.allocators)
            self.allocators.append(role or self.operator)
            if role is None:
                self._note("alloc", size, number)
            else:
                self.measured.held_bytes += size

            def freed(_: object) -> None:
                del self.numbers[key]
                self._note("free", size, number)

            self._references.append(weakref.ref(storage, freed))
        return self.numbers[key]

    def _note(self, kind: Literal["alloc", "free"], size: int, number: int) -> None:
        if not self.done:
            self.measured.events.append(Event(kind, self.step, self.phase, self.operator, size, number))

    def __call__(self, func: Any, args: Any, kwargs: Any, proceed: Proceed) -> Any:
        tensors = [one for one in tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor)]
        if self.runs_on_host(func.overloadpacket.__name__, tensors):
            result = proceed(func, args, kwargs)
            made = [one.untyped_storage() for one in tree_leaves(result) if isinstance(one, torch.Tensor)]
            self.host |= {storage._cdata: storage for storage in made}
            return result
        name = func.overloadpacket.__name__
        before, self.operator = self.operator, name
        result = proceed(func, args, kwargs)
        fresh = len(self.allocators)
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self.number(leaf)
                if name != "detach":  # autograd takes one of each output that it saves
                    self.producers[self._key_of(leaf)] = name
        if name == "detach" and len(self.allocators) == fresh:
            self.operator = before
        return result

    def runs_on_host(self, name: str, tensors: list[torch.Tensor]) -> bool:
        """Numbers that a script makes tensors of, an optimizer's counters among them, are on a GPU's host."""
        if name == "lift_fresh":
            return tensors[0].dim() == 0
        return bool(tensors) and all(one.untyped_storage()._cdata in self.host for one in tensors)

    def _key_of(self, tensor: torch.Tensor) -> tuple[Any, ...]:
        return (self.number(tensor), tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype)

    def pack(self, tensor: torch.Tensor) -> tuple[SavedTensor | None, torch.Tensor]:
        """Describe a tensor when autograd saves it; None for a number of Python's, on the host for a GPU too."""
        if tensor.untyped_storage()._cdata not in self.numbers and tensor.dim() == 0:
            return None, tensor
        number = self.number(tensor, "input")
        allocator = self.allocators[number]
        producer = self.producers.get(self._key_of(tensor), allocator)
        dtype = str(tensor.dtype).removeprefix("torch.")
        return SavedTensor("", "", tuple(tensor.shape), dtype, producer, number, allocator), tensor

    def unpack(self, packed: tuple[SavedTensor | None, torch.Tensor]) -> torch.Tensor:
        """The tensor again."""
        return packed[1]

    def saved_by(self, loss: torch.Tensor) -> Iterator[SavedTensor]:
        """What the nodes of a graph save, by the nodes' own names for it, earliest node first."""
        nodes, waiting = set(), [loss.grad_fn]
        while waiting:
            node = waiting.pop()
            if node is not None and node not in nodes:
                nodes.add(node)
                waiting += [following for following, _ in node.next_functions]
        for node in sorted(nodes, key=lambda one: one._sequence_nr()):
            for attribute in sorted(dir(node)):
                if not attribute.startswith("_raw_saved_"):
                    continue
                name = attribute.removeprefix("_raw_saved_")
                for raw in tree_leaves(getattr(node, attribute)):
                    # `checkpoint` packs in its own way what is computed again.
                    if isinstance(raw.data, tuple) and isinstance(raw.data[0], SavedTensor):
                        yield replace(raw.data[0], node=node.name(), name=name)


class _Mode(TorchDispatchMode):
    def __init__(self, watch: _Watch) -> None:
        super().__init__()
        self.watch = watch

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.namespace in ("prim", "profiler"):
            return func(*args, **(kwargs or {}))
        return self.watch(func, args, kwargs or {}, lambda called, args, kwargs: called(*args, **kwargs))


def measure(
    model: torch.nn.Module,
    batch: dict[str, torch.Tensor],
    make_optimizer: Callable[[list[torch.nn.Parameter]], torch.optim.Optimizer] | None = None,
    steps: int = 2,
    autocast: AbstractContextManager[Any] | None = None,
    loss_of: Callable[[Any], torch.Tensor] = lambda output: output.loss,
    in_mode: bool = False,
) -> Measured:
    """Run training steps: forward, loss, backward, optimizer; gradients are dropped before the next forward.

    Parameters
    ----------
    in_mode : watch from a dispatch mode, as PyTorch's own tracker does: while one is active, autograd adds gradients
        out of place
    """
    measured = Measured()
    watch = _Watch(measured)
    parameters = [one for one in model.parameters() if one.requires_grad]
    optimizer = make_optimizer(parameters) if make_optimizer is not None else None
    with _Mode(watch) if in_mode else below_autograd(watch):
        for role, tensors in (
            ("parameter", model.parameters()),
            ("buffer", model.buffers()),
            ("input", batch.values()),
        ):
            for tensor in tensors:
                watch.number(tensor, role)
        for step in range(steps):
            watch.step, watch.phase = step, "forward"
            _step(model, batch, optimizer, watch, autocast or nullcontext(), loss_of)
        watch.done = True
    return measured


def _step(
    model: torch.nn.Module,
    batch: dict[str, torch.Tensor],
    optimizer: torch.optim.Optimizer | None,
    watch: _Watch,
    autocast: AbstractContextManager[Any],
    loss_of: Callable[[Any], torch.Tensor],
) -> None:
    if optimizer is not None:
        optimizer.zero_grad(set_to_none=True)
    with autocast, torch.autograd.graph.saved_tensors_hooks(watch.pack, watch.unpack):
        loss = loss_of(model(**batch))
    watch.measured.saved.append(list(watch.saved_by(loss)))
    watch.phase = "backward"
    loss.backward()
    if optimizer is not None:
        watch.phase = "optimizer"
        optimizer.step()
