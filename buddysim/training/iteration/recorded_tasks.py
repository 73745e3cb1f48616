"""Tasks of a recorded step: its operations of other streams than the one that computes, with what they wait for.

A task starts behind the last computation that it waits for or whose result it reads, at the end of that one's step, and
behind the tasks before it in its stream. The step before the first computation that waits for it ends with it. The host
runs ahead of the GPU: so a copy back may start long before the computation in front of which the host issues it, where
it waits for nothing. A tensor that is copied back is allocated where the record allocates it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from buddysim.training.autograd.records import TracedOperation
from buddysim.training.autograd.tape import Tape
from buddysim.training.iteration.program import QueuedTask, Stream

#: Pinned memory comes in powers of two bytes (``aten/src/ATen/core/CachingHostAllocator.h``).
_MIN_PINNED = 512


def pinned_size(byte_count: int) -> int:
    """Return the pinned memory that a buffer takes."""
    return max(_MIN_PINNED, 1 << (byte_count - 1).bit_length())


@dataclass
class _Task:
    operation: TracedOperation
    stream: Stream
    launch: int
    layer: int
    after: tuple[int, ...]
    duration_ps: int
    until: int | None = None


@dataclass
class RecordedTasks:
    """The tasks so far.

    Attributes
    ----------
    number : of the task of an operation, by its index
    step_of : of a computation, by its operation's index
    computed : step that wrote a storage last
    """

    tape: Tape
    tasks: list[_Task] = field(default_factory=list)
    number: dict[int, int] = field(default_factory=dict)
    step_of: dict[int, int] = field(default_factory=dict)
    computed: dict[int, int] = field(default_factory=dict)
    _writers: dict[int, int] = field(default_factory=dict)  # of storages, by tasks
    _buffers: dict[int, int] = field(default_factory=dict)  # of host buffers, by tasks
    _last: dict[str, int] = field(default_factory=dict)  # launching step of a stream's last task

    def computes(self, operation: TracedOperation, step: int) -> None:
        """Note that an operation runs in a step, behind the end of the one before."""
        self.waits(operation, step - 1)
        self.step_of[operation.index] = step
        for operand in operation.writes:
            self.computed[operand.storage] = step

    def waits(self, operation: TracedOperation, step: int) -> None:
        """Let the end of a step wait for what an operation waits for."""
        for number in self._tasks_before(operation):
            task = self.tasks[number]
            if task.until is None:
                task.until = max(step, task.launch)

    def add(
        self,
        operation: TracedOperation,
        layer: int,
        step: int,
        duration_ps: int,
        *,
        blocking: bool = False,
        host_free: int = 0,
    ) -> None:
        """Add a task that the host issues behind a step.

        Parameters
        ----------
        blocking : the computations wait for it at once
        host_free : the step that runs when the host has launched all before it, and can work itself
        """
        stream = _stream_of(operation)
        after = self._tasks_before(operation)
        behind = [self.step_of[one] for one in operation.after if one in self.step_of]
        behind += [self.computed[one.storage] for one in operation.reads if one.storage in self.computed]
        earliest = max([self._last.get(stream, 0), *behind, *(self.tasks[one].launch for one in after)])
        if stream == "host":
            earliest = max(earliest, host_free)
        launch = step if blocking else earliest
        number = len(self.tasks)
        self.tasks.append(_Task(operation, stream, launch, layer, after, duration_ps, step if blocking else None))
        self.number[operation.index], self._last[stream] = number, launch
        for operand in operation.writes:
            self._writers[operand.storage] = number
        if operation.copy is not None and operation.copy.direction == "offload":
            self._buffers[operation.copy.buffer] = number

    def _tasks_before(self, operation: TracedOperation) -> tuple[int, ...]:
        numbers = [self.number[one] for one in operation.after if one in self.number]
        numbers += [self._writers[one.storage] for one in operation.reads if one.storage in self._writers]
        if operation.copy is not None and operation.copy.direction == "prefetch":
            numbers += [self._buffers[one] for one in (operation.copy.buffer,) if one in self._buffers]
        return tuple(dict.fromkeys(numbers))

    def queued(self, steps: int) -> list[QueuedTask]:
        """Return the tasks of a program of so many steps; what nothing waits for ends with the last one."""
        fetched = {one.operation.copy.buffer for one in self.tasks if _is_prefetch(one)}  # type: ignore[union-attr]
        return [self._queued(number, task, steps, fetched) for number, task in enumerate(self.tasks)]

    def _queued(self, number: int, task: _Task, steps: int, fetched: set[int]) -> QueuedTask:
        copy, collective = task.operation.copy, task.operation.collective
        moved = 0 if copy is None else copy.bytes
        size = moved if collective is None else collective.bytes
        pinned = 0
        if copy is not None and not self.tape.host_buffers[copy.buffer].lasts:
            pinned = pinned_size(self.tape.host_buffers[copy.buffer].bytes)
        is_offload = task.stream == "offload"
        stays = is_offload and copy is not None and copy.buffer not in fetched
        return QueuedTask(
            number, task.stream, task.layer, -1, "after", size, moved,
            task.operation.times * task.duration_ps, steps - 1 if task.until is None else task.until,
            task.after, pinned if is_offload else 0, pinned if not is_offload or stays else 0,
            f"{task.operation.name} of {task.operation.scope or 'the model'}",
        )  # fmt: skip


def _stream_of(operation: TracedOperation) -> Stream:
    """The stream of a task; what the computations wait for at once is in the one that others of its kind are in."""
    if operation.copy is not None:
        return operation.copy.direction
    if operation.stream != "compute":
        return operation.stream
    assert operation.collective is not None
    return "gather" if operation.collective.kind in ("all_gather", "broadcast") else "reduce"


def _is_prefetch(task: _Task) -> bool:
    return task.operation.copy is not None and task.operation.copy.direction == "prefetch"
