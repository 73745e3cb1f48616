"""Trains a network and records, for some iterations, every operator and the size classes of its results."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from buddysim.capture.torch.recorder import OnMap, Recorder, bytes_of, check_version
from buddysim.compress import DEFAULT, entry_classes
from buddysim.compress.compressors import joined
from buddysim.formats.operator_graph import OperatorGraph
from buddysim.workloads.training.problem import StudyNetwork, TrainingProblem

#: Size classes of entries for each compressor: uint8 (compressors, entries).
Classes = NDArray[np.uint8]
#: Compressors of the snapshots over the run (Buddy Compression, ISCA version, Fig. 5a); the replay uses the first.
COMPRESSORS: Final = (DEFAULT, "bdi+fpc", "zvc")
#: Operators whose accesses depend on integers that they read, with the index of this input.
_LOOKUPS: Final = ("embedding", "embedding_dense_backward")


@dataclass(frozen=True)
class Write:
    """A write of an operator to a storage: size classes of all entries of the storage."""

    operator: int
    storage: int
    classes: Classes


@dataclass
class ObservedIteration:
    """An observed iteration.

    Attributes
    ----------
    number : optimizer steps before it
    loss : of its batch
    graph : its operators
    before : size classes of the storages that exist before it, by number
    writes : all writes, in the order of the operators
    values : integers that look-ups read, by operator and by index among its inputs
    """

    number: int
    loss: float = 0.0
    graph: OperatorGraph | None = None
    before: dict[int, Classes] = field(default_factory=dict)
    writes: list[Write] = field(default_factory=list)
    values: dict[int, dict[int, NDArray[np.int64]]] = field(default_factory=dict)


class _Recorder(Recorder):
    """Recorder that also knows the running modules and, given `values`, records the integers that look-ups read."""

    values: dict[int, dict[int, NDArray[np.int64]]] | None = None
    running: list[str]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.namespace == "prim":  # a question about a tensor without memory
            return func(*args, **(kwargs or {}))
        if self.values is not None and func.overloadpacket.__name__ in _LOOKUPS:
            numbers = np.array(bytes_of(args[1].untyped_storage()).view(np.int64))
            self.values[len(self.operators)] = {1: numbers[args[1].storage_offset() :][: args[1].numel()]}
        return super().__torch_dispatch__(func, types, args, kwargs)


def train(
    network: StudyNetwork, problem: TrainingProblem, observed: Sequence[int]
) -> Iterator[ObservedIteration | float]:
    """Train from the beginning to the end on one thread.

    Parameters
    ----------
    observed : iterations to record, from 1 on; iteration 0 creates the optimizer's state

    Yields
    ------
    each observed iteration; the loss of every other one
    """
    check_version()
    with _one_thread(problem.seed):
        module = network.build(problem).train()
        optimizer = network.optimizer(module.parameters(), problem)
        batches = network.batches(problem)
        for number in range(problem.steps):
            data, right = next(batches)
            if number in observed:
                yield _observed(number, module, optimizer, data, right)
            else:
                yield float(step(module, optimizer, data, right))


@contextmanager
def _one_thread(seed: int) -> Iterator[None]:
    """Context with deterministic arithmetic, which restores PyTorch's state at its end."""
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.set_num_threads(threads)
        torch.set_rng_state(state)


def step(
    module: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    data: torch.Tensor,
    right: torch.Tensor,
    recorder: Recorder | None = None,
) -> torch.Tensor:
    """Make an optimizer step; return the loss of its batch."""
    result = module(data)
    loss = torch.nn.functional.cross_entropy(result, right)
    del result
    loss.backward()
    if recorder is not None:
        recorder.optimizing = True
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.detach()


def _observed(
    number: int, module: torch.nn.Module, optimizer: torch.optim.Optimizer, data: torch.Tensor, right: torch.Tensor
) -> ObservedIteration:
    observed = ObservedIteration(number)
    before = {name: _classes(tensor) for _, name, tensor in _lasting(module, optimizer, data, right)}
    recorder = recorder_of(module, optimizer, data, right, partial(_note, observed))
    recorder.values = observed.values
    observed.loss = float(recorded_step(recorder, module, optimizer, data, right))
    observed.graph = recorder.graph(number, {})
    last = len(observed.graph.operators) - 1
    numbers = {storage.name: at for at, storage in enumerate(observed.graph.storages) if storage.alloc_operator is None}
    observed.before = {numbers[name]: classes for name, classes in before.items() if name in numbers}
    for role, name, tensor in _lasting(module, optimizer, data, right):
        if role != "input" and name in numbers:
            writers = observed.graph.writers(numbers[name])
            if writers:
                observed.writes.append(Write(min(writers[-1], last), numbers[name], _classes(tensor)))
    observed.writes.sort(key=lambda write: write.operator)
    return observed


def recorder_of(
    module: torch.nn.Module, optimizer: torch.optim.Optimizer, data: torch.Tensor, right: torch.Tensor, note: OnMap
) -> _Recorder:
    """Return the recorder of a step."""
    named = {
        tensor.untyped_storage()._cdata: (role, name) for role, name, tensor in _lasting(module, optimizer, data, right)
    }
    running: list[str] = []
    recorder = _Recorder(named, lambda: running[-1] if running else "", note, lambda recorder: None)
    recorder.running = running
    return recorder


def recorded_step(
    recorder: _Recorder,
    module: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    data: torch.Tensor,
    right: torch.Tensor,
) -> torch.Tensor:
    """Make a recorded step; return the loss of its batch."""
    with _module_names(module, recorder.running), recorder:
        return step(module, optimizer, data, right, recorder)


def _lasting(
    module: torch.nn.Module, optimizer: torch.optim.Optimizer, data: torch.Tensor, right: torch.Tensor
) -> Iterator[tuple[str, str, torch.Tensor]]:
    """Yield role, name and tensor of everything that exists before an iteration."""
    for name, parameter in module.named_parameters():
        yield "weight", f"weight: {name}", parameter.detach()
    for name, buffer in module.named_buffers():
        yield "buffer", f"buffer: {name}", buffer
    for name, parameter in module.named_parameters():
        for key, value in optimizer.state.get(parameter, {}).items():
            if isinstance(value, torch.Tensor):
                yield "optimizer", f"optimizer: {name} {key}", value
    yield "input", "samples", data
    yield "input", "labels", right


def _note(observed: ObservedIteration, recorder: Recorder, operator: int, tensor: torch.Tensor) -> None:
    storage = recorder.number_of(tensor.untyped_storage())
    if (
        storage is not None
        and recorder.storages[storage]["alloc_operator"] is not None
        and tensor.untyped_storage().nbytes()
    ):
        observed.writes.append(Write(operator, storage, _classes(tensor)))


def _classes(tensor: torch.Tensor) -> Classes:
    data = bytes_of(tensor.untyped_storage())
    return np.stack(
        [np.minimum.reduce([entry_classes(data, one) for one in joined(several)]) for several in COMPRESSORS]
    )


@contextmanager
def _module_names(module: torch.nn.Module, running: list[str]) -> Iterator[None]:
    names = {id(each): name for name, each in module.named_modules()}
    before = register_module_forward_pre_hook(lambda each, args: running.append(names.get(id(each), "")))

    def leave(each: torch.nn.Module, args: Any, output: Any) -> None:
        running.pop()

    after = register_module_forward_hook(leave)
    try:
        yield
    finally:
        before.remove()
        after.remove()
