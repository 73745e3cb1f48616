"""A training of the original's size that is recorded without computing it.

PyTorch provides operators and tensors without memory. Their contents are those of a smaller training of the same
network, repeated by layer."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from buddysim.base.errors import BuddysimError
from buddysim.capture.torch.access.graph_accesses import GraphKernels
from buddysim.compress import ENTRY_BYTES
from buddysim.formats.operator_graph import OperatorGraph
from buddysim.workloads.training.observe import Classes, ObservedIteration, Write, recorded_step, recorder_of, step
from buddysim.workloads.training.problem import StudyNetwork, TrainingProblem
from buddysim.workloads.training.tensor_layout import lay_out

_TWO: Final = 2  # samples of the batch that provides the shapes


class _Updates(TorchDispatchMode):  # type: ignore[misc]
    """Provide an operator without results, for which PyTorch has no shape function."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return None if func.overloadpacket is torch.ops.aten._fused_sgd_ else func(*args, **(kwargs or {}))


def graph_of(network: StudyNetwork, problem: TrainingProblem) -> OperatorGraph:
    """Return the operators of the second iteration of a training of any size, within seconds and without its memory."""
    samples, labels = next(network.batches(dataclasses.replace(problem, batch=_TWO)))
    with FakeTensorMode(), _Updates():
        data = torch.empty((problem.batch, *samples.shape[1:]), dtype=samples.dtype)
        right = torch.empty(problem.batch * labels.numel() // _TWO, dtype=labels.dtype)
        module = network.build(problem).train()
        optimizer = network.optimizer(module.parameters(), problem)
        step(module, optimizer, data, right)
        recorder = recorder_of(module, optimizer, data, right, lambda recorder, operator, tensor: None)
        recorded_step(recorder, module, optimizer, data, right)
        return recorder.graph(1, {})


def size_of(graph: OperatorGraph) -> tuple[int, int, int]:
    """Return estimates of an iteration.

    Returns
    -------
    approximate warp memory instructions of its kernels; bytes of the pool; bytes that its operators write
    """
    layout, kernels = lay_out(graph), GraphKernels(graph)
    computing = [operator for operator in graph.operators if operator.kind == "compute"]
    written = sum(graph.tensors[at].extent for operator in computing for at in operator.outputs)
    return kernels.instructions, sum(segment.bytes for segment in layout.pool), written


def repeat_by_layer(small: ObservedIteration, graph: OperatorGraph) -> ObservedIteration:
    """Return an iteration of the larger graph with the contents of a smaller training's iteration.

    Operators and storages correspond by number. A storage repeats the entries of the smaller one in order; look-ups
    repeat its integers.

    Raises
    ------
    BuddysimError
            two iterations with different operators
    """
    small_graph = small.graph
    assert small_graph is not None
    if _shape(small_graph) != _shape(graph):
        raise BuddysimError(f"iteration {small.number} has other operators than that of the original's size")
    sizes = [-(-storage.bytes // ENTRY_BYTES) for storage in graph.storages]
    scaled = ObservedIteration(small.number, small.loss, graph)
    scaled.before = {number: _repeated(classes, sizes[number]) for number, classes in small.before.items()}
    scaled.writes = [
        Write(one.operator, one.storage, _repeated(one.classes, sizes[one.storage])) for one in small.writes
    ]
    for number, read in small.values.items():
        tensors = graph.operators[number].inputs
        scaled.values[number] = {
            at: np.resize(numbers, int(np.prod(graph.tensors[tensors[at]].shape))) for at, numbers in read.items()
        }
    return scaled


def _repeated(classes: Classes, entries: int) -> Classes:
    return np.stack([np.resize(row, entries) for row in classes])


def _shape(graph: OperatorGraph) -> tuple[object, ...]:
    """Return the properties that must be equal in both."""
    storages = tuple((one.role, one.alloc_operator, one.free_operator) for one in graph.storages)
    operators = tuple(
        (one.name, tuple(graph.tensors[at].storage for at in (*one.inputs, *one.outputs))) for one in graph.operators
    )
    return storages, operators
