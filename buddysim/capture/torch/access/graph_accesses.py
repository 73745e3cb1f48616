"""Kernels of a recorded iteration: by access models, or else one pass over the operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from buddysim.capture.torch.access.launch import ModelledKernel, write_launch
from buddysim.capture.torch.access.operators import OperatorCall, launches_of
from buddysim.capture.torch.access.tensors import TensorView
from buddysim.capture.torch.operator_kernels import ASSUMED as OF_ONE_PASS
from buddysim.capture.torch.operator_kernels import LINES_PER_WARP, WARPS_PER_BLOCK, OperandRange, write_operator
from buddysim.formats.operator_graph import Operator, OperatorGraph
from buddysim.trace import TraceWriter

#: Assumptions for a trace's provenance, by access model.
ASSUMED: Final[Mapping[str, Mapping[str, str]]] = {
    "kernels": {
        "accesses": (
            "Accesses are modelled, not captured: access models of the kernels that PyTorch launches on a GPU without "
            "tensor cores (tiled GEMM and implicit-GEMM convolution, cuDNN's batch normalisation, pooling, softmax, "
            "look-ups, elementwise, fused optimizer). Operators without a model read each operand and write each "
            "result once, and workspaces are left out: both are optimistic."
        ),
        "compute_gaps": (
            "Modelled: a thread's multiply-adds of an iteration of the k-loop, and 2 instructions before other "
            "accesses, without latencies. Compute-bound kernels err in either direction."
        ),
        "dependencies": (
            "Modelled: tiles are fetched an iteration ahead; the next instruction uses other loads, which is "
            "pessimistic."
        ),
    },
    "one-pass": OF_ONE_PASS,
}
_NONE: Final[Mapping[int, NDArray[np.int64]]] = {}


@dataclass(frozen=True)
class OnePassKernel:
    """Accesses of an operator without a model: it reads each operand once and writes each result once."""

    name: str
    operands: tuple[OperandRange, ...]
    flops: int

    @property
    def instructions(self) -> int:
        """Approximate number of memory instructions."""
        return sum(operand.lines for operand in self.operands)

    @property
    def of_a_block(self) -> int:
        """Approximate number of memory instructions of a thread block."""
        return WARPS_PER_BLOCK * LINES_PER_WARP * len(self.operands)


class GraphKernels:
    """The kernels of a graph's operators.

    Parameters
    ----------
    graph : of an iteration
    access_model : a key of `ASSUMED`

    Attributes
    ----------
    counts : kernels of each operator
    instructions : approximate number of their memory instructions
    of_a_block : largest number of memory instructions of a thread block
    """

    def __init__(self, graph: OperatorGraph, access_model: str = "kernels") -> None:
        self.graph, self._modelled = graph, access_model == "kernels"
        per_operator = [
            self.kernels_of(number, lambda storage: storage + 1 << 40) for number in range(len(graph.operators))
        ]
        self.counts = tuple(map(len, per_operator))
        self.instructions = sum(kernel.instructions for kernels in per_operator for kernel in kernels)
        self.of_a_block = max((kernel.of_a_block for kernels in per_operator for kernel in kernels), default=0)

    def kernels_of(
        self, number: int, address: Callable[[int], int], values: Mapping[int, NDArray[np.int64]] = _NONE
    ) -> list[ModelledKernel | OnePassKernel]:
        """Return the kernels of an operator, in order; none if it computes nothing.

        Parameters
        ----------
        number : of the operator
        address : gives the address of a storage by its number
        values : integers that it reads, by input index
        """
        operator = self.graph.operators[number]
        inputs, outputs = (
            tuple(self._view(tensor, address) for tensor in tensors if self.graph.tensors[tensor].extent)
            for tensors in (operator.inputs, operator.outputs)
        )
        if operator.kind != "compute" or not (inputs or outputs):
            return []
        name = f"{f'{operator.phase} {operator.module}'.strip()}: {operator.name}"
        if self._modelled:
            models = launches_of(OperatorCall(operator.short_name, inputs, outputs, operator.arguments, values))
            if models is not None:
                return [replace(launch, name=f"{name}: {launch.name}") for launch in models]
        return [OnePassKernel(name, self._operands(operator, address), operator.flops)]

    def _view(self, tensor: int, address: Callable[[int], int]) -> TensorView:
        operand = self.graph.tensors[tensor]
        return TensorView(address(operand.storage) + operand.offset, operand.shape, operand.strides, operand.dtype)

    def _operands(self, operator: Operator, address: Callable[[int], int]) -> tuple[OperandRange, ...]:
        """Return the ranges of memory that an operator reads, then those that it writes, each once."""
        operands: list[OperandRange] = []
        for written, tensors in ((False, operator.inputs), (True, operator.outputs)):
            ranges = {
                (address(tensor.storage) + tensor.offset, tensor.extent)
                for tensor in (self.graph.tensors[index] for index in tensors)
                if tensor.extent
            }
            operands += [OperandRange(start, size, written) for start, size in sorted(ranges)]
        return tuple(operands)


def write_kernel(writer: TraceWriter, kernel: ModelledKernel | OnePassKernel, launch_index: int) -> None:
    """Write a kernel after `launch_index` launches."""
    if isinstance(kernel, OnePassKernel):
        write_operator(writer, kernel.name, kernel.operands, kernel.flops, launch_index)
    else:
        write_launch(writer, kernel, launch_index)
