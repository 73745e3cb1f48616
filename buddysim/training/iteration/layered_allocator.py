"""PyTorch's caching allocator under an iteration by layers of a recorded network: the same rule as for its record.

Each tensor of a layer is one request: what a pass needs for a while is one too, which fragments less than the record's
many. Prefetches wait for free memory as under `LiveSetCounter`, in as much memory as the allocator can serve.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from buddysim.base.memory_pool import FitPolicy
from buddysim.training.autograd.records import AllocationEvent, Event, FreeEvent
from buddysim.training.autograd.tape import Tape
from buddysim.training.caching_allocator import replay_tape
from buddysim.training.caching_allocator.allocator import AllocationFailure
from buddysim.training.iteration.allocators import LiveSetCounter
from buddysim.training.iteration.memory_usage import (
    CachingFacts,
    FailedRequest,
    TensorAddresses,
    WorkspaceRelief,
    peak_bytes,
)
from buddysim.training.iteration.process_memory import ProcessMemory
from buddysim.training.iteration.program import Program

#: Sizes of memory that are tried at most, each smaller by what was short in the one before.
_MAX_SIZES = 20


class LayeredAllocator(ProcessMemory):
    """The allocator of an iteration by layers."""

    def allocate(
        self,
        program: Program,
        capacity: int | None,
        pool_policy: FitPolicy = "best-fit",
        relief: WorkspaceRelief | None = None,
    ) -> TensorAddresses:
        """Run two iterations, as `RecordedAllocator.allocate`."""
        offered = self.offered(capacity)
        size = None if offered is None else max(0, offered - 2 * self.workspace_bytes)
        first: TensorAddresses | None = None
        for _ in range(_MAX_SIZES):
            counted = LiveSetCounter().allocate(program, size, pool_policy, relief)
            if counted.failure is not None:
                first = first or self._with_facts(counted, counted.high_water, 0)
                break
            cached, short = self._cached(counted, offered)
            if short is None or size is None:
                return cached
            first = first or cached
            size = max(0, size - short)
        assert first is not None
        return first

    def _cached(self, counted: TensorAddresses, offered: int | None) -> tuple[TensorAddresses, int | None]:
        """Return what the allocator does with tensors that would fit without it, and by how much it is too small."""
        located = list(self._events(counted.program))
        tape = Tape()
        tape.events = [event for _, event in located]
        replay = replay_tape(tape, self.settings, offered)
        extra = max(0, replay.peak_requested_bytes - peak_bytes(counted.program))
        cached = self._with_facts(counted, replay.peak_reserved_bytes, extra, replay.peak_allocated_bytes)
        if replay.failure is None:
            return cached, None
        assert offered is not None
        event, short = replay.failure
        failure = self._failed(counted.program, located[event], short, offered)
        return replace(cached, failure=failure), failure.shortfall_bytes

    def _with_facts(
        self, counted: TensorAddresses, high_water: int, workspaces: int, allocated: int | None = None
    ) -> TensorAddresses:
        facts = CachingFacts(high_water if allocated is None else allocated, workspaces, self.outside_bytes)
        return replace(counted, high_water=high_water, caching=facts)

    def _events(self, program: Program) -> Iterator[tuple[int, Event]]:
        """Yield the events of two iterations, each with the number of its step; -1 before the first one."""
        size_of = [tensor.byte_count for tensor in program.tensors]
        for tensor in program.resident:
            yield -1, AllocationEvent(tensor, size_of[tensor])
        workspaces = {step: len(size_of) + n for n, step in enumerate((0, program.first_backward))}
        for _ in range(2):
            live: dict[int, None] = {}
            for step in program.steps:
                if step.index in workspaces:
                    yield step.index, AllocationEvent(workspaces.pop(step.index), self.workspace_bytes)
                for tensor in step.allocate:
                    live[tensor] = None
                    yield step.index, AllocationEvent(tensor, size_of[tensor])
                for tensor in step.release:
                    live.pop(tensor, None)
                    yield step.index, FreeEvent(tensor, size_of[tensor])
            for tensor in live:
                yield len(program.steps) - 1, FreeEvent(tensor, size_of[tensor])

    def _failed(
        self, program: Program, located: tuple[int, Event], short: AllocationFailure, offered: int
    ) -> FailedRequest:
        """The request that fails; cached blocks have been given back by then."""
        number, event = located
        left = offered - short.reserved
        missing = short.rounded - left
        if number < 0:
            return FailedRequest(
                "gpu", None, "resident", "tensors that live throughout", short.requested, left, left, missing
            )
        step = program.steps[number]
        is_tensor = event.storage < len(program.tensors) if isinstance(event, AllocationEvent) else False
        kind = program.tensors[event.storage].kind if is_tensor else "library_workspace"  # type: ignore[union-attr]
        return FailedRequest("gpu", step.layer, step.pass_, kind, short.requested, left, left, missing)
