"""The kernels of an iteration: access models where there are any, one pass over the operands otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from buddysim.capture.torch.access.launch import Launch, write_launch
from buddysim.capture.torch.access.operators import Call, launches_of
from buddysim.capture.torch.access.tensors import View
from buddysim.capture.torch.kernels import Operand, write_operator
from buddysim.formats.operator_graph import Operator, OperatorGraph
from buddysim.trace import TraceWriter
from buddysim.workloads.training.layout import Layout


@dataclass(frozen=True)
class OnePass:
    """What an operator without a model does: it reads each operand once and writes each result once."""

    name: str
    operands: tuple[Operand, ...]
    flops: int


def kernels_of(
    graph: OperatorGraph, number: int, layout: Layout, values: Mapping[int, NDArray[np.int64]]
) -> list[Launch | OnePass]:
    """The kernels of an operator, in order; none where it computes nothing."""
    operator = graph.operators[number]
    if operator.kind != "compute":
        return []
    inputs, outputs = (
        tuple(_view(graph, tensor, layout) for tensor in tensors if graph.tensors[tensor].extent)
        for tensors in (operator.inputs, operator.outputs)
    )
    if not inputs and not outputs:
        return []
    name = f"{f'{operator.phase} {operator.module}'.strip()}: {operator.name}"
    found = launches_of(Call(operator.short_name, inputs, outputs, operator.arguments, values))
    if found is None:
        return [OnePass(name, _operands(graph, operator, layout), operator.flops)]
    return [replace(launch, name=f"{name}: {launch.name}") for launch in found]


def write_kernel(writer: TraceWriter, kernel: Launch | OnePass, ordinal: int) -> None:
    """Writes one; `ordinal` launches came before it."""
    if isinstance(kernel, OnePass):
        write_operator(writer, kernel.name, kernel.operands, kernel.flops, ordinal)
    else:
        write_launch(writer, kernel, ordinal)


def _view(graph: OperatorGraph, tensor: int, layout: Layout) -> View:
    found = graph.tensors[tensor]
    return View((layout.addresses[found.storage] or 0) + found.offset, found.shape, found.strides, found.dtype)


def _operands(graph: OperatorGraph, operator: Operator, layout: Layout) -> tuple[Operand, ...]:
    """The ranges of memory that an operator reads, then those that it writes, each once."""
    found: list[Operand] = []
    for written, tensors in ((False, operator.inputs), (True, operator.outputs)):
        ranges = {
            ((layout.addresses[tensor.storage] or 0) + tensor.offset, tensor.extent)
            for tensor in (graph.tensors[index] for index in tensors)
            if tensor.extent
        }
        found += [Operand(address, size, written) for address, size in sorted(ranges)]
    return tuple(found)
