"""Tensors come and go step by step: from a pool of addresses, or counted as bytes alone.

`PoolAllocator` takes addresses from `buddysim.base.memory_pool`, with real fragmentation. `LiveSetCounter` only adds
up what lives: memory that is never fragmented and costs nothing to allocate, as Gist assumes of "optimized hardware"
(Section V-H).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Protocol

from buddysim.base.memory_pool import ALIGNMENT, FitPolicy, MemoryPool, PoolExhausted
from buddysim.training.iteration.memory_usage import (
    UNLIMITED,
    FailedRequest,
    TensorAddresses,
    TensorFilter,
    WorkspaceFallback,
    WorkspaceRelief,
    is_any_tensor,
    is_not_workspace,
)
from buddysim.training.iteration.program import Program, ProgramTensor, QueuedTask, Step, defer

#: Pools that are tried at most, each so much smaller than the one before that a request gets another address.
_MAX_POOLS = 200


@dataclass(frozen=True)
class PoolAllocator:
    """A pool as large as the GPU's memory, as vDNN's (Section III-B).

    A prefetch that overlaps a computation waits for the next step in two cases: the pool has no free block for the
    feature map, or the feature map would take the block of the step's workspace. `TensorAddresses.program` has the copy
    in the later step. Tensors that a step needs for its own computation cannot wait.

    A pool in which the iteration runs out of memory may be too large: an early prefetch takes the block that a later
    request needs, where in a smaller pool it would have waited. So the largest pool that serves the iteration is taken
    (vDNN creates its pool with a size of its own), and more memory never makes an iteration that fits run out of it.
    """

    def allocate(
        self,
        program: Program,
        capacity: int | None,
        pool_policy: FitPolicy = "best-fit",
        relief: WorkspaceRelief | None = None,
    ) -> TensorAddresses:
        """Runs the iteration's allocations through the largest pool that serves them, else through the whole memory."""
        size = UNLIMITED if capacity is None else capacity
        counted = is_not_workspace if relief else is_any_tensor
        whole: TensorAddresses | None = None
        min_size = None
        for _ in range(_MAX_POOLS):
            pool = MemoryPool(size, pool_policy)
            placement = _AllocationRun(program, pool, relief() if relief else None).placement()
            if placement.failure is None:
                return replace(placement, pool_bytes=None if capacity is None else size)
            whole = whole or placement
            min_size = self.min_bytes(program, counted) if min_size is None else min_size
            size = (size - pool.slack_bytes - 1) // ALIGNMENT * ALIGNMENT
            if size < min_size:
                break
        assert whole is not None
        return whole

    def min_bytes(self, program: Program, counted: TensorFilter = is_any_tensor) -> int:
        """The least GPU memory that can hold the iteration, whatever addresses it gets and whichever copies wait."""
        return _min_bytes(program, ALIGNMENT, counted)


@dataclass(frozen=True)
class LiveSetCounter:
    """The bytes that are live at once, without addresses. Prefetches wait for free memory as in `PoolAllocator`."""

    def allocate(
        self,
        program: Program,
        capacity: int | None,
        pool_policy: FitPolicy = "best-fit",
        relief: WorkspaceRelief | None = None,
    ) -> TensorAddresses:
        """Adds up allocated bytes; every address is -1."""
        memory = _ByteCounter(UNLIMITED if capacity is None else capacity)
        counted = _AllocationRun(program, memory, relief() if relief else None).placement()
        return replace(counted, addresses=(-1,) * len(program.tensors))

    def min_bytes(self, program: Program, counted: TensorFilter = is_any_tensor) -> int:
        """The most bytes live at once, if each feature map is prefetched only when it is read."""
        return _min_bytes(program, 1, counted)


class _Memory(Protocol):
    free_bytes: int
    high_water: int

    def rounded(self, byte_count: int) -> int: ...
    def allocate(self, byte_count: int) -> int: ...
    def release(self, address: int) -> None: ...


class _ByteCounter:
    """Memory without addresses or fragmentation. Handles count up from 0."""

    def __init__(self, capacity: int) -> None:
        self.capacity = self.free_bytes = capacity
        self.high_water = 0
        self._live: dict[int, int] = {}
        self._handles = 0

    def rounded(self, byte_count: int) -> int:
        """The bytes that a request takes."""
        return byte_count

    def allocate(self, byte_count: int) -> int:
        """A handle; raises PoolExhausted where less is free."""
        if byte_count > self.free_bytes:
            raise PoolExhausted(byte_count, self.free_bytes, self.free_bytes)
        self.free_bytes -= byte_count
        self.high_water = max(self.high_water, self.capacity - self.free_bytes)
        self._handles += 1
        self._live[self._handles - 1] = byte_count
        return self._handles - 1

    def release(self, address: int) -> None:
        """Gives it back."""
        self.free_bytes += self._live.pop(address)


class _AllocationRun:
    """The allocations of one iteration, step by step."""

    def __init__(self, program: Program, memory: _Memory, relief: WorkspaceFallback | None) -> None:
        self.program, self.relief = program, relief
        self.tensors, self.resident = program.tensors, program.resident
        self.steps, self.tasks = list(program.steps), list(program.tasks)  # changed where copies are deferred
        self.memory = memory
        self.addresses = [-1] * len(program.tensors)
        self.deferred: dict[int, int] = {}

    def placement(self) -> TensorAddresses:
        for n_allocated, index in enumerate(self.resident):
            try:
                self._allocate(index)
            except PoolExhausted:
                return self._resident_failure(n_allocated)
        for number in range(len(self.steps)):
            failure = self._step(self.steps[number])
            if failure:
                return self._result(failure)
        return self._result(None)

    def _result(self, failure: FailedRequest | None) -> TensorAddresses:
        program = replace(self.program, steps=tuple(self.steps), tasks=tuple(self.tasks))
        return TensorAddresses(program, tuple(self.addresses), self.memory.high_water, failure, self.deferred)

    def _allocate(self, index: int) -> None:
        self.addresses[index] = self.memory.allocate(self.tensors[index].byte_count)

    def _step(self, step: Step) -> FailedRequest | None:
        may_wait = {self.tasks[number].tensor: number for number in step.tasks if _may_wait(self.tasks[number])}
        for index in step.allocate:
            if index == step.workspace:
                failure = self._workspace(step, index, may_wait)
                if failure:
                    return failure
                continue
            try:
                self._allocate(index)
            except PoolExhausted as short:
                if index not in may_wait:
                    return _failure(self.tensors[index], step.layer, step.pass_, short)
                self._defer(step.index, may_wait.pop(index))
        for index in step.release:
            if self.addresses[index] >= 0:
                self.memory.release(self.addresses[index])
        return None

    def _workspace(self, step: Step, index: int, may_wait: dict[int, int]) -> FailedRequest | None:
        byte_count = self.tensors[index].byte_count
        while byte_count:
            try:
                self.addresses[index] = self.memory.allocate(byte_count)
                return None
            except PoolExhausted as short:
                less = self.relief(step, short) if self.relief else None
                if less is not None:
                    byte_count = less
                elif may_wait:
                    tensor, task = may_wait.popitem()
                    self.memory.release(self.addresses[tensor])
                    self.addresses[tensor] = -1
                    self._defer(step.index, task)
                else:
                    return _failure(self.tensors[index], step.layer, step.pass_, short)
        return None

    def _defer(self, number: int, task: int) -> None:
        step, later = self.steps[number : number + 2]
        self.steps[number], self.steps[number + 1], self.tasks[task] = defer(step, later, self.tasks[task])
        self.deferred[task] = self.deferred.get(task, 0) + 1

    def _resident_failure(self, n_allocated: int) -> TensorAddresses:
        """Counts the resident tensors to their end: they are requested as one, so no layer is at fault."""
        resident = [self.tensors[index] for index in self.resident]
        requested = sum(self.memory.rounded(tensor.byte_count) for tensor in resident[n_allocated:])
        network_wide = any(tensor.kind == "feature_maps" for tensor in resident)
        kind = "network-wide allocation" if network_wide else "allocation of weights, gradients and optimizer state"
        free = self.memory.free_bytes
        return self._result(FailedRequest("gpu", None, "resident", kind, requested, free, free, requested - free))


def _may_wait(task: QueuedTask) -> bool:
    return task.stream == "prefetch" and task.timing == "overlapped"


def _failure(tensor: ProgramTensor, layer: int, pass_: str, short: PoolExhausted) -> FailedRequest:
    sizes = short.requested_bytes, short.free_bytes, short.largest_bytes, short.shortfall_bytes
    return FailedRequest("gpu", layer, pass_, tensor.kind, *sizes)


def _min_bytes(program: Program, alignment: int, counted: TensorFilter) -> int:
    """The most bytes live at once, rounded up, if each feature map is prefetched only when it is read."""
    size = [-(-tensor.byte_count // alignment) * alignment if counted(tensor) else 0 for tensor in program.tensors]
    change = [0] * (len(program.steps) + 1)
    waiting: dict[int, int] = {}
    for step in program.steps:
        for task in (program.tasks[index] for index in step.tasks):
            if _may_wait(task):
                waiting[task.tensor] = size[task.tensor]
        for index in step.allocate:
            change[step.index] += 0 if index in waiting else size[index]
        for index in {*step.reads, *step.writes, *step.release} & waiting.keys():
            change[step.index] += waiting.pop(index)
        for index in step.release:
            change[step.index + 1] -= size[index]
    resident = sum(size[index] for index in program.resident)
    return resident + max(accumulate(change))
