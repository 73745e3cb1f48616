"""The tape of a captured iteration: its storages, allocations, frees, operations and saved tensors, in their order."""

from __future__ import annotations

from collections import defaultdict
from math import prod
from typing import NoReturn

from buddysim.base.errors import BuddysimError
from buddysim.formats.operator_graph import OperandTensor, Operator, OperatorGraph, SavedOperand, Storage
from buddysim.training.autograd.dtypes import DTYPES, DType
from buddysim.training.autograd.records import (
    AllocationEvent,
    FreeEvent,
    Kind,
    Operand,
    Phase,
    Product,
    SavedTensor,
    StorageRecord,
    TracedOperation,
)
from buddysim.training.autograd.tape import Tape
from buddysim.training.networks.captured.gpu_attention import with_fused_attention
from buddysim.training.networks.captured.gpu_recurrent import with_reserves
from buddysim.training.networks.captured.gpu_rules import launched_together, noise_storages, update_temporaries
from buddysim.training.networks.captured.micro_steps import micro_steps
from buddysim.training.networks.captured.other_batch import OtherBatch
from buddysim.training.networks.captured.products import products_of
from buddysim.training.networks.recorded.work import work_of

_KINDS: dict[str, Kind] = {
    "weight": "parameter",
    "buffer": "buffer",
    "gradient": "gradient",
    "optimizer": "optimizer",
    "input": "input",
    "held": "held",
}

_IMPOSSIBLE = (LookupError, TypeError, ValueError, ArithmeticError)


def tape_of_graph(graph: OperatorGraph, other: OtherBatch, *, as_on_gpu: bool = True, own_kernels: bool = True) -> Tape:
    """Return the tape of a captured iteration at a batch.

    Parameters
    ----------
    as_on_gpu : whether what a GPU stores otherwise is stored so
    own_kernels : whether attention with dropout, LSTMs and updates run in a GPU's kernels; False: noise alone is stored
        as there
    """
    return _TapeOfGraph(graph, other, as_on_gpu, own_kernels and as_on_gpu).tape


class _TapeOfGraph:
    def __init__(self, graph: OperatorGraph, other: OtherBatch, as_on_gpu: bool, own_kernels: bool) -> None:
        if own_kernels:
            graph = with_reserves(with_fused_attention(graph))
        self.graph, self.other, self.tape = graph, other, Tape()
        self.noise = noise_storages(graph) if as_on_gpu else {}
        self.together = launched_together(graph) if own_kernels else None
        self.temporaries = update_temporaries(graph, self.together) if self.together else {}
        self.saved = {graph.tensors[one.tensor].storage for one in graph.saved_operands}
        self.allocated: dict[int | None, list[int]] = defaultdict(list)
        self.freed: dict[int | None, list[int]] = defaultdict(list)
        for number, storage in enumerate(graph.storages):
            life = self.temporaries.get(number, storage)
            self.allocated[life.alloc_operator].append(number)
            self.freed[life.free_operator].append(number)
            self.tape.storages.append(self._record(number, storage))
        self.micro_steps = micro_steps(graph)
        self.views = 0
        self.index: list[int] = []  # of the last operation, by operator
        for number in self.allocated[None]:
            self._allocate(number)
        for number, operator in enumerate(graph.operators):
            for allocated in self.allocated[number]:
                self._allocate(allocated)
            self._run(number, operator)
            for freed in self.freed[number]:
                self._free(freed)
            self.index.append(len(self.tape.operations) - 1)
        self._note_saved()
        self.tape.recording = False

    def _record(self, number: int, storage: Storage) -> StorageRecord:
        operator = None if storage.alloc_operator is None else self.graph.operators[storage.alloc_operator]
        size = self.other.size(storage.bytes, storage.doubled)
        if number in self.temporaries and self.temporaries[number].in_place:
            size = 0
        if number in self.noise:
            size = -(-size // self.noise[number])
        kind = _KINDS.get(storage.role, "activation" if number in self.saved else "temporary")
        return StorageRecord(
            number,
            size,
            kind,
            storage.role if operator is None else operator.short_name,
            "" if operator is None else operator.module,
            "setup" if operator is None else operator.phase,
            0,
            label=storage.name,
        )

    def _allocate(self, number: int) -> None:
        record = self.tape.storages[number]
        record.allocated = len(self.tape.events)
        self.tape.events.append(AllocationEvent(number, record.bytes))

    def _free(self, number: int) -> None:
        record = self.tape.storages[number]
        record.freed = len(self.tape.events)
        self.tape.events.append(FreeEvent(number, record.bytes))

    def _run(self, number: int, operator: Operator) -> None:
        """Note an operator: one that computes as an operation, all others as work of the host alone."""
        if operator.kind == "allocation":
            return
        inputs, outputs = operator.inputs, operator.outputs
        if operator.phase == "optimizer" and operator.kind == "compute" and self.together is not None:
            group = [self.graph.operators[one] for one in self.together.get(number, ())]
            if not group:
                return
            inputs = tuple(dict.fromkeys(one for each in group for one in each.inputs))
            outputs = tuple(dict.fromkeys(one for each in group for one in each.outputs))
        reads, writes = self._operands(inputs), self._operands(outputs)
        draws = bool(writes) and all(one.storage in self.noise for one in writes)
        if operator.kind == "view" or not writes or draws:
            self.views += 1
            return
        name, flops = operator.short_name, self.other.size(operator.flops, operator.doubled)
        products = self._products(operator, reads, writes, flops)
        phase: Phase = operator.phase
        node = "" if phase != "backward" else name
        operations = self.tape.operations
        operation = TracedOperation(
            *(len(operations), name, operator.module, phase, node, reads, writes, products, flops, self.views),
            micro_step=self.micro_steps[number],
        )
        self.views = 0
        self._check(operator, operation)
        operations.append(operation)
        self.tape.events.append(operation)

    def _products(
        self, operator: Operator, reads: tuple[Operand, ...], writes: tuple[Operand, ...], flops: int
    ) -> tuple[Product, ...]:
        try:
            return products_of(operator.short_name, reads, writes, flops)
        except _IMPOSSIBLE:
            self._refuse(operator)

    def _check(self, operator: Operator, operation: TracedOperation) -> None:
        """Refuse an operator that the file says has tensors which it can't have."""
        try:
            work_of(operation)
        except _IMPOSSIBLE:
            self._refuse(operator)

    def _refuse(self, operator: Operator) -> NoReturn:
        where = f" in module {operator.module!r}" if operator.module else ""
        raise BuddysimError(f"operator graph: operator {operator.name}{where}: its tensors are none that it can have")

    def _operands(self, numbers: tuple[int, ...]) -> tuple[Operand, ...]:
        tensors = [self.graph.tensors[number] for number in numbers]
        return tuple(self._operand(one) for one in tensors if prod(one.shape))

    def _operand(self, tensor: OperandTensor) -> Operand:
        size = 1 if tensor.storage in self.noise else None
        return Operand(tensor.storage, self.other.shape(tensor), tensor.strides, _dtype(tensor, size))

    def _note_saved(self) -> None:
        for one in self.graph.saved_operands:
            tensor = self.graph.tensors[one.tensor]
            operand, record = self._operand(tensor), self.tape.storages[tensor.storage]
            operation = self._saving(one, tensor.storage)
            self.tape.saved.append(
                SavedTensor(one.node, "", *operand[1:], tensor.storage, record.producer, one.module, operation)
            )

    def _saving(self, saved: SavedOperand, storage: int) -> int:
        """Return the operation that a tensor is saved for, by its index.

        Inputs are saved before it runs, results behind it: it is the last one or the next one, whichever is of the
        module in which the tensor was saved; of two, the last one if it wrote the tensor.
        """
        operations = self.tape.operations
        last = self.index[saved.operator] if self.index else -1
        if last < 0 or last + 1 == len(operations):
            return max(0, last)
        is_here = [operations[one].scope == saved.module for one in (last, last + 1)]
        if is_here[0] != is_here[1]:
            return last if is_here[0] else last + 1
        return last if any(written.storage == storage for written in operations[last].writes) else last + 1


def _dtype(tensor: OperandTensor, size: int | None) -> DType:
    if size is not None:
        return DTYPES["bool"]
    if tensor.dtype in DTYPES:
        return DTYPES[tensor.dtype]
    last = sum((extent - 1) * stride for extent, stride in zip(tensor.shape, tensor.strides, strict=True))
    return DType(tensor.dtype, max(1, tensor.extent // (last + 1)), 2 if "float" in tensor.dtype else 1)
