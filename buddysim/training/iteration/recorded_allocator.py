"""PyTorch's caching allocator under a recorded step: two iterations in order, so that the second one finds the cache.

As in PyTorch, the optimizer's state is allocated in the first update. Outside of the allocator lie the CUDA context and
what NCCL takes; within it, but not on the record, cuBLAS' workspaces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from buddysim.base.memory_pool import FitPolicy
from buddysim.training.autograd.records import AllocationEvent, Event, FreeEvent, TracedOperation
from buddysim.training.autograd.tape import Tape
from buddysim.training.caching_allocator import AllocationFailure, AllocatorReplay, replay_tape
from buddysim.training.iteration.memory_usage import (
    CachingFacts,
    FailedRequest,
    TensorAddresses,
    WorkspaceRelief,
)
from buddysim.training.iteration.process_memory import ProcessMemory
from buddysim.training.iteration.program import Pass, Program
from buddysim.training.iteration.recorded_kinds import kinds_of_storages
from buddysim.training.networks.recorded.network import RecordedNetwork

_SETUP = "allocation of weights, gradients and optimizer state"
_PASSES: dict[str, Pass] = {"optimizer": "update"}


@dataclass(frozen=True, kw_only=True)
class RecordedAllocator(ProcessMemory):
    """The allocator of a recorded network."""

    network: RecordedNetwork

    def allocate(
        self,
        program: Program,
        capacity: int | None,
        pool_policy: FitPolicy = "best-fit",
        relief: WorkspaceRelief | None = None,
    ) -> TensorAddresses:
        """Run two iterations; `TensorAddresses.high_water` is the most that is reserved."""
        offered, events = self.offered(capacity), two_iterations(self.network.tape)
        replay = self._replay(events, offered)
        failure = None
        if replay.failure is not None:
            assert offered is not None
            failure = self._failed(events[replay.failure[0]], replay.failure[1], offered)
        return TensorAddresses(
            program, (-1,) * len(program.tensors), replay.peak_reserved_bytes, failure, {}, caching=self._facts(replay)
        )

    def exceeds(self, capacity: int) -> bool:
        """Whether some request of two iterations fails: as `allocate` finds, from the record alone."""
        return self._replay(two_iterations(self.network.tape), self.offered(capacity)).failure is not None

    def _replay(self, events: list[Event], offered: int | None) -> AllocatorReplay:
        repeated = Tape()
        repeated.events = events
        return replay_tape(repeated, self.settings, offered, self.workspace_bytes)

    def _facts(self, replay: AllocatorReplay) -> CachingFacts:
        workspaces = replay.peak_requested_bytes - self.network.tape.peak_bytes()
        return CachingFacts(replay.peak_allocated_bytes, workspaces, self.outside_bytes)

    def _failed(self, event: Event, short: AllocationFailure, offered: int) -> FailedRequest:
        """The request that fails; cached blocks have been given back by then."""
        tape = self.network.tape
        left = offered - short.reserved
        layer, pass_, kind = None, "resident", _SETUP
        position = next(number for number, one in enumerate(tape.events) if one is event)
        if isinstance(event, AllocationEvent):
            record = tape.storages[event.storage]
            if record.phase != "setup":
                layer, kind = self._layer_at(position), kinds_of_storages(tape)[event.storage]
                pass_ = _PASSES.get(record.phase, record.phase)
        else:
            layer, pass_, kind = self._layer_at(position), "forward", "library_workspace"
        return FailedRequest("gpu", layer, pass_, kind, short.requested, left, left, short.rounded - left)

    def _layer_at(self, position: int) -> int:
        """The layer of the next operation from an event on."""
        layer_of = {one.index: run.index + 1 for run in self.network.runs for one in run.operations}
        following = (one for one in self.network.tape.events[position:] if isinstance(one, TracedOperation))
        return next((layer_of[one.index] for one in following if one.index in layer_of), 0)


def two_iterations(tape: Tape) -> list[Event]:
    """Return the events of a process's first two iterations of the step that a tape holds.

    What an iteration leaves allocated is freed before the next one, as Python's variables are overwritten. What a
    captured iteration frees of the one before it is allocated again, so that both iterations are equal.
    """
    started = _position(tape, tape.events, "setup", other=True)
    setup, iteration = tape.events[:started], tape.events[started:]
    state = [
        one for one in setup if isinstance(one, AllocationEvent) and tape.storages[one.storage].kind == "optimizer"
    ]
    update = _position(tape, iteration, "optimizer", other=False)
    if update == len(iteration):
        state = []
    lazy = {id(one) for one in state}
    first = [one for one in setup if id(one) not in lazy]
    live = {one.storage: one for one in iteration if isinstance(one, AllocationEvent)}
    for one in iteration:
        if isinstance(one, FreeEvent):
            live.pop(one.storage, None)
    left = [FreeEvent(one.storage, one.bytes) for one in live.values()]
    freed = {one.storage for one in iteration if isinstance(one, FreeEvent)}
    again = [one for one in setup if isinstance(one, AllocationEvent) and one.storage in freed]
    return [*first, *iteration[:update], *state, *iteration[update:], *left, *again, *iteration]


def _position(tape: Tape, events: Sequence[Event], phase: str, *, other: bool) -> int:
    """Position of the first event of a phase, or of another one; of frees the tape has no phase."""
    for position, one in enumerate(events):
        if isinstance(one, FreeEvent):
            continue
        own = tape.storages[one.storage].phase if isinstance(one, AllocationEvent) else one.phase
        if (own == phase) is not other:
            return position
    return len(events)
