"""A recorded step as torch.compile runs it: fused kernels, and of the forward pass what the rules of `fusion` keep."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from buddysim.training.autograd.dtypes import float32
from buddysim.training.autograd.fusion import Dataflow, RegionOf, is_kernel, is_reduction, masks_of, row_statistics
from buddysim.training.autograd.layout import contiguous_strides
from buddysim.training.autograd.records import (
    AllocationEvent,
    Event,
    FreeEvent,
    Operand,
    SavedTensor,
    StorageRecord,
    TracedOperation,
)
from buddysim.training.autograd.tape import Tape

_NODE = "CompiledFunctionBackward"


def whole_model(scope: str) -> str | None:
    """The region of every module where the model is compiled as one."""
    return ""


def compiled(tape: Tape, region_of: RegionOf = whole_model) -> Tape:
    """Return the step of a tape as compiled code runs it.

    Storages that only element-wise operations read are never allocated; the others live from the kernel that writes
    them to the last one that reads them. Operations that write no storage any more are part of the kernels that read
    what they wrote; of a module, those between two products are one kernel. What the optimizer does stays as it is.

    Parameters
    ----------
    region_of : regions of the model, by scope; what a region leaves to another one is in memory
    """
    return _Compiled(tape, region_of).result


class _Compiled:
    """The transformation of one tape.

    Attributes
    ----------
    in_memory : transient storages that are allocated at all
    reads : what each operation that remains reads from memory, by its index
    last : index of the last operation that uses a storage
    last_rows : index of the last operation that computes the result of an operation with row statistics again
    numbers : of storages in the new tape, by their numbers in the old one
    indices : of operations in the new tape, by those in the old one
    """

    def __init__(self, tape: Tape, region_of: RegionOf) -> None:
        self.tape, self.flow, self.region_of = tape, Dataflow(tape, region_of), region_of
        self.in_memory = self._in_memory()
        self.last: dict[int, int] = {}
        self.last_rows: dict[int, int] = {}
        self.reads = {one.index: self._reads(one) for one in tape.operations if self._remains(one)}
        self.numbers: dict[int, int] = {}
        self.indices: dict[int, int] = {}
        self.result = Tape(tape.default_dtype)
        self.result.compiled = True
        self.result.host_buffers, self.result.host_bytes = tape.host_buffers, tape.host_bytes
        self._record()

    def _in_memory(self) -> set[int]:
        stored = set(self.flow.retained)
        for operation in self.tape.operations:
            if self.flow.is_kernel(operation):
                stored |= {one.storage for one in (*operation.reads, *operation.writes)}
            elif is_reduction(operation) or any(not self.flow.is_transient(one.storage) for one in operation.writes):
                stored |= {one.storage for one in operation.writes}
            else:
                stored |= {one.storage for one in operation.writes if self.flow.leaves_region(one.storage)}
        return stored

    def _holds(self, storage: int, reader: TracedOperation) -> bool:
        """Whether a storage is in memory when an operation runs: of the forward pass only what is retained."""
        if not self.flow.is_transient(storage):
            return True
        if self.flow.is_earlier(storage, reader):
            return storage in self.flow.retained
        return storage in self.in_memory

    def _remains(self, operation: TracedOperation) -> bool:
        if self.flow.regions[operation.index] is None or operation.index in self.flow.rows:
            return True
        return any(one.storage in self.in_memory or not self.flow.is_transient(one.storage) for one in operation.writes)

    def _reads(self, operation: TracedOperation) -> list[Operand]:
        """What a kernel reads from memory: its operands, or those of the operations that it takes in."""
        reads: dict[int, Operand] = {}
        waiting = list(operation.reads)
        seen = {one.storage for one in waiting}
        while waiting:
            operand = waiting.pop()
            if self._holds(operand.storage, operation):
                reads.setdefault(operand.storage, operand)
                self.last[operand.storage] = operation.index
                continue
            for writer in self.flow.writers[operand.storage]:
                if writer.index >= operation.index:
                    continue
                if writer.index in self.flow.rows:
                    self.last_rows[writer.index] = operation.index
                for one in (*writer.reads, *masks_of(writer)):
                    if one.storage not in seen:
                        seen.add(one.storage)
                        waiting.append(one)
        for operand in operation.writes:
            self.last[operand.storage] = operation.index
        return list(reads.values())

    def _kernels(self) -> dict[int, list[TracedOperation]]:
        """Operations that are one kernel, by the index of the last one."""
        kernels: list[list[TracedOperation]] = []
        for operation in self.tape.operations:
            if operation.index not in self.reads:
                continue
            before = kernels[-1][-1] if kernels else None
            if before is not None and self._are_fused(before, operation):
                kernels[-1].append(operation)
            else:
                kernels.append([operation])
        return {kernel[-1].index: kernel for kernel in kernels}

    def _are_fused(self, first: TracedOperation, second: TracedOperation) -> bool:
        """Whether two operations, one after the other, are one kernel."""
        region = self.flow.regions[first.index]
        return (
            first.phase == second.phase
            and region is not None
            and region == self.flow.regions[second.index]
            and first.scope == second.scope
            and not is_kernel(first)
            and not is_kernel(second)
        )

    def _record(self) -> None:
        kernels = self._kernels()
        saved = self._saved_by_eager_code()
        dying: dict[int, list[int]] = defaultdict(list)
        for storage, index in self.last.items():
            if self.flow.is_transient(storage) and storage in self.in_memory:
                dying[index].append(storage)
        dying_rows: dict[int, list[int]] = defaultdict(list)
        for event in self.tape.events:
            if not isinstance(event, TracedOperation):
                self._other_event(event)
                continue
            for operation in (kernel := kernels.get(event.index, [])):
                self._make(operation)
            if kernel:
                rows = self._launch(kernel)
                for index, number in rows.items():
                    dying_rows[self.last_rows.get(index, index)].append(number)
            for operation in kernel:
                for number in dying_rows.pop(operation.index, ()):
                    self._free(number)
                for storage in dying.pop(operation.index, ()):
                    self._free(self.numbers[storage])
            for one in saved.pop(event.index, ()):
                number, index = self.numbers[one.storage], len(self.result.operations)
                self.result.saved.append(replace(one, storage=number, operation=index - 1))

    def _saved_by_eager_code(self) -> dict[int, list[SavedTensor]]:
        """What autograd saves of modules that aren't compiled, by the operation before."""
        saved: dict[int, list[SavedTensor]] = defaultdict(list)
        for one in self.tape.saved:
            if self.region_of(one.scope) is None and not self.flow.is_transient(one.storage):
                saved[one.operation].append(one)
        return saved

    def _other_event(self, event: Event) -> None:
        """Take over allocations and frees of what isn't transient."""
        assert isinstance(event, AllocationEvent | FreeEvent)
        record = self.tape.storages[event.storage]
        if self.flow.is_transient(event.storage):
            return
        if isinstance(event, AllocationEvent):
            self.numbers[event.storage] = self._allocate(record)
        else:
            self._free(self.numbers[event.storage])

    def _make(self, operation: TracedOperation) -> None:
        """Allocate what an operation writes first."""
        for storage in self.flow.unwritten.get(operation.index, ()):
            if storage in self.in_memory and storage not in self.numbers:
                self.numbers[storage] = self._allocate(self.tape.storages[storage])
        for operand in operation.writes:
            if operand.storage in self.in_memory and operand.storage not in self.numbers:
                self.numbers[operand.storage] = self._allocate(self.tape.storages[operand.storage])
                if operand.storage in self.flow.retained:
                    self._saved(self._renumbered(operand), operation)

    def _launch(self, kernel: list[TracedOperation]) -> dict[int, int]:
        """Record operations as one; return the storages of row statistics, by operation."""
        reads: dict[int, Operand] = {}
        writes: dict[int, Operand] = {}
        rows: dict[int, int] = {}
        for operation in kernel:
            for operand in self.reads[operation.index]:
                if self.numbers[operand.storage] not in writes:
                    reads.setdefault(self.numbers[operand.storage], self._renumbered(operand))
            for operand in operation.writes:
                if operand.storage in self.numbers:
                    writes[self.numbers[operand.storage]] = self._renumbered(operand)
            if operation.index in self.flow.rows:
                statistics = self._statistics(operation)
                writes[statistics.storage] = statistics
                rows[operation.index] = statistics.storage
        index = len(self.result.operations)
        self.indices |= {one.index: index for one in kernel}
        last = replace(
            kernel[-1],
            index=index,
            reads=tuple(reads.values()),
            writes=tuple(writes.values()),
            products=tuple(product for operation in kernel for product in operation.products),
            flops=sum(operation.flops for operation in kernel),
            after=tuple(self.indices[one] for operation in kernel for one in operation.after if one in self.indices),
        )
        self.result.operations.append(last)
        self.result.events.append(last)
        return rows

    def _statistics(self, operation: TracedOperation) -> Operand:
        """The largest number and the logarithm of the sum, of each row."""
        shape = (row_statistics(operation), 2)
        bytes_ = shape[0] * shape[1] * float32.size
        record = StorageRecord(0, bytes_, "activation", operation.name, operation.scope, operation.phase, 0)
        operand = Operand(self._allocate(record), shape, contiguous_strides(shape), float32)
        self._saved(operand, operation)
        return operand

    def _saved(self, operand: Operand, operation: TracedOperation) -> None:
        index = len(self.result.operations)
        self.result.saved.append(
            SavedTensor(
                _NODE,
                "saved",
                operand.shape,
                operand.strides,
                operand.dtype,
                operand.storage,
                operation.name,
                operation.scope,
                index,
            )
        )

    def _renumbered(self, operand: Operand) -> Operand:
        return operand._replace(storage=self.numbers[operand.storage])

    def _allocate(self, record: StorageRecord) -> int:
        number = len(self.result.storages)
        kind = record.kind
        if kind in ("activation", "temporary"):
            kind = "activation" if record.number in self.flow.retained or kind == "activation" else "temporary"
        self.result.storages.append(
            replace(record, number=number, kind=kind, allocated=len(self.result.events), freed=None)
        )
        self.result.events.append(AllocationEvent(number, record.bytes))
        return number

    def _free(self, number: int) -> None:
        record = self.result.storages[number]
        record.freed = len(self.result.events)
        self.result.events.append(FreeEvent(number, record.bytes))
