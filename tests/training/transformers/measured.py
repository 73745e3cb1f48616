"""Measures training steps in PyTorch: what autograd saves, and every storage from its allocation to its end.

The truth are the reports of PyTorch's own allocator, which the profiler collects. All that Python can hold of a storage
(its wrapper, a weak reference to that, a dispatch mode) counts as a user, and makes autograd add gradients out of
place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import torch
from torch.utils._pytree import tree_leaves

from buddysim.training.networks.from_torch.below_autograd import Proceed, below_autograd

Phase = Literal["forward", "backward", "optimizer"]
#: A step of a user's script: model, batch, optimizer.
Script = Callable[[torch.nn.Module, dict[str, torch.Tensor], Any], None]


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


class _Called(NamedTuple):
    operator: str
    step: int
    phase: Phase
    on_host: bool
    lifted: tuple[int, int] | None


class _Watch:
    """Marks each operator in the profile, and numbers the storages that operators return by their addresses."""

    def __init__(self) -> None:
        self.step = 0
        self.phase: Phase = "forward"
        self.called: list[_Called] = []
        self.numbers: dict[int, int] = {}
        self.allocators: list[str] = []
        self.producers: dict[tuple[Any, ...], str] = {}

    def hold(self, tensor: torch.Tensor, role: str) -> int:
        """Number a tensor that is there before the first step: its bytes, 0 if another one shares them."""
        if _address(tensor) in self.numbers:
            return 0
        self._number(tensor, role)
        return tensor.numel() * tensor.element_size()

    def _number(self, tensor: torch.Tensor, allocator: str) -> int:
        number = self.numbers[_address(tensor)] = len(self.allocators)
        self.allocators.append(allocator)
        return number

    def _is_host(self, tensor: torch.Tensor) -> bool:
        """Numbers that a script makes tensors of, an optimizer's counters among them, are on a GPU's host."""
        return tensor.numel() == 1 and _address(tensor) not in self.numbers

    def __call__(self, func: Any, args: Any, kwargs: Any, proceed: Proceed) -> Any:
        name = func.overloadpacket.__name__
        inputs = [one for one in tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor)]
        on_host = bool(inputs) and all(map(self._is_host, inputs))
        phase = "backward" if torch._C._current_graph_task_id() != -1 else self.phase
        lifted = None
        if name == "lift_fresh" and inputs[0].numel() > 1:  # made of a list: allocated before, out of sight
            lifted, inputs = (_address(inputs[0]), inputs[0].numel() * inputs[0].element_size()), []
        self.called.append(_Called(name, self.step, phase, on_host, lifted))
        with torch.profiler.record_function(f"#{len(self.called) - 1}"):
            result = proceed(func, args, kwargs)
        if on_host:
            return result
        if name == "lift_fresh" and result.numel() == 1:
            self.numbers.pop(_address(result), None)  # of a storage that ended there
        before = {_address(one) for one in inputs}
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor) and leaf.numel():
                if _stays_on_host(name, leaf):
                    self.numbers.pop(_address(leaf), None)
                elif _address(leaf) not in before:
                    self._number(leaf, name)
                # Autograd takes a detached one of each output that it saves; products expand what has the shape.
                if name != "detach" and not (name == "expand" and _key(leaf) in self.producers):
                    self.producers[_key(leaf)] = name
        return result

    def pack(self, tensor: torch.Tensor) -> tuple[SavedTensor | None, torch.Tensor]:
        """Describe a tensor when autograd saves it; None for a number of the host."""
        if self._is_host(tensor) or _is_number(tensor) or not tensor.numel():
            return None, tensor
        self.hold(tensor, "input")
        number = self.numbers[_address(tensor)]
        allocator = self.allocators[number]
        producer = self.producers.get(_key(tensor), allocator)
        dtype = str(tensor.dtype).removeprefix("torch.")
        return SavedTensor("", "", tuple(tensor.shape), dtype, producer, number, allocator), tensor

    @staticmethod
    def unpack(packed: tuple[SavedTensor | None, torch.Tensor]) -> torch.Tensor:
        """The tensor again."""
        return packed[1]

    @staticmethod
    def saved_by(loss: torch.Tensor) -> Iterator[SavedTensor]:
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


def measure(
    model: torch.nn.Module,
    batch: dict[str, torch.Tensor],
    make_optimizer: Callable[[list[torch.nn.Parameter]], torch.optim.Optimizer] | None = None,
    steps: int = 2,
    autocast: AbstractContextManager[Any] | None = None,
    loss_of: Callable[[Any], torch.Tensor] = lambda output: output.loss,
    script: Script | None = None,
) -> Measured:
    """Run training steps: forward, loss, backward, optimizer; gradients are dropped before the next forward.

    Parameters
    ----------
    script : what a step does instead
    """
    measured, watch = Measured(), _Watch()
    held = {"parameter": model.parameters(), "buffer": model.buffers(), "input": batch.values()}
    for role, tensors in held.items():
        measured.held_bytes += sum(watch.hold(one, role) for one in tensors)
    parameters = [one for one in model.parameters() if one.requires_grad]
    optimizer = make_optimizer(parameters) if make_optimizer is not None else None
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        for step in range(steps):
            watch.step = step
            if script is not None:
                with below_autograd(watch):
                    script(model, batch, optimizer)
                continue
            _step(model, batch, optimizer, watch, measured, autocast or nullcontext(), loss_of)
    measured.events = list(_events(profile, watch))
    return measured


def _step(
    model: torch.nn.Module,
    batch: dict[str, torch.Tensor],
    optimizer: torch.optim.Optimizer | None,
    watch: _Watch,
    measured: Measured,
    autocast: AbstractContextManager[Any],
    loss_of: Callable[[Any], torch.Tensor],
) -> None:
    watch.phase = "forward"
    with below_autograd(watch):
        if optimizer is not None:
            optimizer.zero_grad(set_to_none=True)
        with autocast, torch.autograd.graph.saved_tensors_hooks(watch.pack, watch.unpack):
            loss = loss_of(model(**batch))
    measured.saved.append(list(watch.saved_by(loss)))
    with below_autograd(watch):
        loss.backward()
        del loss
        watch.phase = "optimizer"
        if optimizer is not None:
            optimizer.step()


def _events(profile: Any, watch: _Watch) -> Iterator[Event]:
    """Allocations and frees of the profile, without those that an operator itself frees, and without the host's."""
    live: dict[int, tuple[int, int]] = {}
    numbers = 0
    for number, within, behind in _by_operator(profile):
        called = watch.called[number]
        left = dict([called.lifted] if called.lifted else [])
        for address, size in within:
            if size > 0:
                left[address] = size
            elif left.pop(address, None) is None and address in live:
                yield _event("free", called, *live.pop(address))
        for address, size in left.items():
            if not called.on_host and not ("efficient_attention" in called.operator and size == 8):
                live[address] = size, numbers
                yield _event("alloc", called, size, numbers)
                numbers += 1
        for address in behind:
            if address in live:
                yield _event("free", called, *live.pop(address))


def _event(kind: Literal["alloc", "free"], called: _Called, size: int, storage: int) -> Event:
    return Event(kind, called.step, called.phase, called.operator, size, storage)


def _by_operator(profile: Any) -> Iterator[tuple[int, list[tuple[int, int]], list[int]]]:
    """Addresses and sizes, below 0 for frees, within each marked operator, and the addresses freed behind it.

    What is allocated between operators are numbers of Python's, which a GPU has on its host.
    """
    waiting = list(profile.profiler.kineto_results.experimental_event_tree())
    flat: list[tuple[int, int, int, Any]] = []
    while waiting:
        event = waiting.pop()
        waiting += event.children
        if "Allocation" in str(event.tag):
            flat.append((event.start_time_ns, event.start_time_ns, -1, event.extra_fields))
        elif event.name.startswith("#"):
            flat.append((event.start_time_ns, event.end_time_ns, int(event.name[1:]), None))
    number, end = -1, -1
    within: list[tuple[int, int]] = []
    behind: list[int] = []
    for begin, until, marker, fields in sorted(flat, key=lambda event: event[0]):
        if marker >= 0:
            if number >= 0:
                yield number, within, behind
            number, end, within, behind = marker, until, [], []
        elif begin <= end:
            within.append((fields.ptr, fields.alloc_size))
        elif fields.alloc_size < 0:
            behind.append(fields.ptr)
    if number >= 0:
        yield number, within, behind


def _is_number(tensor: torch.Tensor) -> bool:
    """A factor or a limit that a script writes in Python."""
    return not tensor.dim() and tensor.dtype in (torch.float64, torch.int64, torch.bool)


def _stays_on_host(name: str, tensor: torch.Tensor) -> bool:
    """Seed and offset of the generator."""
    return "efficient_attention" in name and not tensor.dim()


def _address(tensor: torch.Tensor) -> int:
    return tensor.data_ptr() - tensor.storage_offset() * tensor.element_size()


def _key(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tuple(tensor.stride())
