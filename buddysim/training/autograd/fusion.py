"""What torch.compile joins into one kernel, and what it keeps for the backward pass: stated rules, over a tape.

Element-wise operations and reductions become part of the kernel that reads or writes memory next; products, attention
and operations on indices are kernels of their own. Of what the backward pass reads:

1. What a kernel of its own reads is retained (inputs of products, queries, keys, values and the result of attention).
2. What element-wise formulas read is computed again, from what is retained already and from whichever is smaller: the
   tensor itself, or what it is computed from. Results of kernels of their own can't be computed again; nor can the
   statistics of a row, which are small.
3. What reads an element-wise result after a kernel of its own has used that result is not computed again. So sums of
   the residual stream are retained, not the results of all blocks before them.

This is what PyTorch's min-cut partitioner keeps of transformers' blocks; tests compare the two.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import cached_property
from math import prod

from buddysim.training.autograd.records import AllocationEvent, Operand, TracedOperation
from buddysim.training.autograd.tape import Tape

#: The passes that are compiled.
COMPILED_PHASES = ("forward", "recompute", "backward")
#: The region of a module, by its scope: regions are compiled by themselves; None runs eagerly.
RegionOf = Callable[[str], str | None]
#: Operations that are kernels of their own.
_KERNELS = frozenset(
    {
        "_grouped_mm",
        "_index_put_impl_",
        "addmm",
        "baddbmm",
        "bmm",
        "convolution",
        "convolution_backward",
        "cross_entropy",
        "cross_entropy_backward",
        "cumsum",
        "element_mul",
        "embedding",
        "embedding_dense_backward",
        "gather",
        "histc",
        "index",
        "index_add",
        "index_put_",
        "index_select",
        "liger_cross_entropy",
        "mm",
        "scatter_",
        "sort",
        "topk",
    }
)
_ATTENTION = "_scaled_dot_product_"
#: Reductions in one operation whose results are as large as their operands: statistics of rows are retained for them.
_ROWS = frozenset({"_softmax", "_log_softmax", "_safe_softmax"})
#: Operations with random numbers, whose second result (the mask) can't be computed again.
_RANDOM = frozenset({"native_dropout"})
#: A result that is this many times smaller than what it is computed from is not computed again (partitioners.py).
_SMALL = 4


def is_kernel(operation: TracedOperation) -> bool:
    """Whether an operation is a kernel of its own."""
    return operation.name in _KERNELS or operation.name.startswith(_ATTENTION)


def is_reduction(operation: TracedOperation) -> bool:
    """Whether the results of an operation are much smaller than what it reads."""
    return sum(map(_elements, operation.writes)) * _SMALL < sum(map(_elements, operation.reads))


def row_statistics(operation: TracedOperation) -> int:
    """Rows of which an operation keeps two fp32 numbers each, when it is computed again."""
    if operation.name not in _ROWS:
        return 0
    return prod(operation.writes[0].shape[:-1])


def _is_queued(operation: TracedOperation) -> bool:
    """Whether an operation runs on another stream than the computations, or waits for one that does."""
    return operation.copy is not None or operation.stream != "compute" or operation.name == "wait"


def _elements(operand: Operand) -> int:
    return prod(operand.shape)


class Dataflow:
    """Who writes and who reads each storage of a step.

    Attributes
    ----------
    writers : operations by storage, in order
    unwritten : storages that no operation writes, by the index of the operation that follows their allocation
    regions : what each operation is compiled with, by its index; None: eager
    compiled : storages that compiled code writes or reads
    retained : storages that the forward pass leaves to the backward pass
    rows : operations whose row statistics are retained
    late : storages that are not computed again: they read something far behind its first use
    """

    def __init__(self, tape: Tape, region_of: RegionOf) -> None:
        self.tape = tape
        self.regions = self._regions(region_of)
        self.compiled = self._compiled_storages()
        self.writers: dict[int, list[TracedOperation]] = defaultdict(list)
        for operation in tape.operations:
            for operand in operation.writes:
                self.writers[operand.storage].append(operation)
        self.unwritten = self._unwritten()
        self.late = self._late()
        self.retained: set[int] = set()
        self.rows: set[int] = set()
        self._keep()

    def _regions(self, region_of: RegionOf) -> dict[int, str | None]:
        """The region of each operation; the first run of what is recomputed is a region of its own."""
        regions = {
            one.index: region_of(one.scope) if one.phase in COMPILED_PHASES and not _is_queued(one) else None
            for one in self.tape.operations
        }
        again = {regions[one.index] for one in self.tape.operations if one.phase == "recompute"}
        for operation in self.tape.operations:
            region = regions[operation.index]
            if region is not None and region in again and operation.phase == "forward":
                regions[operation.index] = f"{region}, first run"
        return regions

    def _compiled_storages(self) -> set[int]:
        """Storages that compiled code writes or reads."""
        return {
            operand.storage
            for operation in self.tape.operations
            if self.regions[operation.index] is not None
            for operand in (*operation.reads, *operation.writes)
        }

    def is_transient(self, storage: int) -> bool:
        """Whether a storage is allocated by the step itself, and no gradient of a weight.

        What eager code alone uses lives as long as without compilation.
        """
        record = self.tape.storages[storage]
        made = record.kind in ("activation", "temporary") and record.phase in COMPILED_PHASES
        return made and storage in self.compiled

    def is_kernel(self, operation: TracedOperation) -> bool:
        """Whether an operation is a kernel of its own: one of `is_kernel`, or one that isn't compiled."""
        return self.regions[operation.index] is None or is_kernel(operation)

    def leaves_region(self, storage: int) -> bool:
        """Whether an operation of another region, or an eager one, reads what an operation writes."""
        return storage in self._crossing

    @cached_property
    def _crossing(self) -> set[int]:
        written: dict[int, set[str | None]] = defaultdict(set)
        crossing: set[int] = set()
        for operation in self.tape.operations:
            region = self.regions[operation.index]
            crossing |= {one.storage for one in operation.reads if written[one.storage] - {region}}
            for operand in operation.writes:
                written[operand.storage].add(region)
        return crossing

    def is_forward(self, storage: int) -> bool:
        """Whether the forward pass allocates a storage, its first run or a second one."""
        return self.is_transient(storage) and self.tape.storages[storage].phase != "backward"

    def is_earlier(self, storage: int, reader: TracedOperation) -> bool:
        """Whether an operation reads what an earlier pass has left."""
        return self.is_forward(storage) and self.tape.storages[storage].phase != reader.phase

    def _unwritten(self) -> dict[int, list[int]]:
        unwritten: dict[int, list[int]] = defaultdict(list)
        waiting: list[int] = []
        for event in self.tape.events:
            if isinstance(event, AllocationEvent):
                if event.storage not in self.writers:
                    waiting.append(event.storage)
            elif isinstance(event, TracedOperation) and waiting:
                unwritten[event.index], waiting = waiting, []
        return unwritten

    def _late(self) -> set[int]:
        """What element-wise operations write that read the result of another one after a kernel has used that.

        The kernel may be behind other operations. PyTorch's partitioner has the same rule
        (`ban_recompute_used_far_apart`): without it, what is computed again reads the results of all blocks before.
        """
        forward = [one for one in self.tape.operations if one.phase == "forward"]
        readers: dict[int, list[TracedOperation]] = defaultdict(list)
        for operation in forward:
            for operand in operation.reads:
                readers[operand.storage].append(operation)
        first_kernel: dict[int, int] = {}
        late: set[int] = set()
        for operation in reversed(forward):
            users = [one for operand in operation.writes for one in readers[operand.storage]]
            users = [one for one in users if one.index > operation.index]
            kernels = (one.index if self.is_kernel(one) else first_kernel[one.index] for one in users)
            first_kernel[operation.index] = first = min(kernels, default=len(self.tape.operations))
            if not self.is_kernel(operation):
                fused = [one for one in users if one.index > first and not self.is_kernel(one)]
                late |= {operand.storage for one in fused for operand in one.writes}
        return late

    def _keep(self) -> None:
        needed: set[int] = set()
        for operation in self.tape.operations:
            if operation.phase not in ("backward", "recompute"):
                continue
            for operand in operation.reads:
                if self.is_earlier(operand.storage, operation):
                    (self.retained if self.is_kernel(operation) else needed).add(operand.storage)
        for storage in sorted(needed - self.retained):
            missing, rows = self._missing(storage)
            size = sum(self.tape.storages[one].bytes for one in missing)
            if missing and size >= self.tape.storages[storage].bytes:
                self.retained.add(storage)
            else:
                self.retained |= missing
                self.rows |= rows

    def _missing(self, storage: int) -> tuple[set[int], set[int]]:
        """What must be retained so that a storage can be computed again; and operations with statistics of rows."""
        missing: set[int] = set()
        rows: set[int] = set()
        waiting, seen = [storage], {storage}
        while waiting:
            one = waiting.pop()
            if one in self.retained or not self.is_forward(one):
                continue
            writers = self.writers[one]
            if (
                one in self.late
                or self.leaves_region(one)
                or any(self.is_kernel(writer) or is_reduction(writer) or _is_mask(writer, one) for writer in writers)
            ):
                missing.add(one)
                continue
            for writer in writers:
                if row_statistics(writer):
                    rows.add(writer.index)
                for operand in (*writer.reads, *masks_of(writer)):
                    if operand.storage not in seen:
                        seen.add(operand.storage)
                        waiting.append(operand.storage)
        return missing, rows


def masks_of(operation: TracedOperation) -> tuple[Operand, ...]:
    """The masks that an operation with random numbers writes."""
    return operation.writes[1:] if operation.name in _RANDOM else ()


def _is_mask(operation: TracedOperation, storage: int) -> bool:
    return any(one.storage == storage for one in masks_of(operation))
