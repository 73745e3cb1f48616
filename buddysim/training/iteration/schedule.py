"""A program on the clock: when everything happens, and where the compute stream stands still."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from buddysim.training.iteration import timeline
from buddysim.training.iteration.program import CopyTiming, Program, QueuedTask, Step


class StreamOperation(NamedTuple):
    """One operation of a stream: a computation, or the task `task` on a feature map of `byte_count` bytes."""

    stream: str
    layer: int
    pass_: str
    start_ps: int
    end_ps: int
    byte_count: int
    task: int | None = None


class Stall(NamedTuple):
    """Time that the compute stream stood still before (or at the end of) a step, and the task that it waited for.

    Attributes
    ----------
    layer, pass_ : of the step that could not end or begin
    cause : ``"offload"`` or ``"prefetch"`` (a copy overlapped with computations and took longer), ``"on-demand"`` or
        ``"copy-out"`` (a copy that overlaps with nothing), ``"host"`` (the host's own work), ``"gather"`` or
        ``"reduce"`` (GPUs waited for each other), ``"contention"`` (the computation took longer next to these)
    copied_layer : the layer whose feature map it was
    """

    layer: int
    pass_: str
    cause: str
    copied_layer: int
    start_ps: int
    ps: int


@dataclass(frozen=True)
class IterationSchedule:
    """A program on the clock. Steps follow each other directly: a step's waiting is part of it."""

    program: Program
    records: tuple[StreamOperation, ...]
    stalls: tuple[Stall, ...]
    step_start_ps: tuple[int, ...]
    step_end_ps: tuple[int, ...]

    @property
    def time_ps(self) -> int:
        """From the start of the first step to the end of the last one."""
        return self.step_end_ps[-1]

    @cached_property
    def step_ps(self) -> list[int]:
        """Time of each step, ps."""
        return [end - start for start, end in zip(self.step_start_ps, self.step_end_ps, strict=True)]


def operations(program: Program) -> tuple[list[timeline.Operation], list[tuple[int, int | None]]]:
    """The program as operations for streams, and for each its step and its task (None for a computation).

    A step ends when its computation has, and the tasks that it waits for; an operation of no duration on the compute
    stream stands for that, so that waiting at the end of the last step counts too.
    """
    made: list[timeline.Operation] = []
    origin: list[tuple[int, int | None]] = []
    position: dict[int, int] = {}  # of a task's operation
    awaited: dict[int, list[int]] = {}  # operations by the step whose end waits for them
    done: tuple[int, ...] = ()  # the end of the step before

    def add(stream: str, duration: int, after: tuple[int, ...], step: int, task: int | None) -> int:
        made.append(timeline.Operation(stream, duration, after))
        origin.append((step, task))
        return len(made) - 1

    def launch(step: Step, timing: CopyTiming, after: tuple[int, ...]) -> list[int]:
        launched = []
        for task in (program.tasks[number] for number in step.tasks):
            if task.timing == timing:
                earlier = tuple(position[number] for number in task.after)
                position[task.number] = add(task.stream, task.duration_ps, (*after, *earlier), step.index, task.number)
                awaited.setdefault(task.until, []).append(position[task.number])
                launched.append(position[task.number])
        return launched

    for step in program.steps:
        first = launch(step, "before", done)
        launch(step, "overlapped", done)
        compute = add(timeline.COMPUTE, step.compute_ps, (*done, *first), step.index, None)
        launch(step, "after", (compute,))
        waiting = [operation for operation in awaited.get(step.index, []) if operation not in first]
        done = (compute,)
        if waiting:
            done = (add(timeline.COMPUTE, 0, (compute, *waiting), step.index, None),)
    return made, origin


def schedule(program: Program) -> IterationSchedule:
    """Puts a program on the clock."""
    made, origin = operations(program)
    times = timeline.run(made, program.shared)
    records, stalls = [], []
    ends = [0] * len(program.steps)
    for position, (step_index, task_index) in enumerate(origin):
        step = program.steps[step_index]
        start, end = times.start_ps[position], times.end_ps[position]
        if task_index is not None:
            task = program.tasks[task_index]
            records.append(
                StreamOperation(task.stream, task.layer, step.pass_, start, end, task.byte_count, task.number)
            )
            continue
        ends[step_index] = end  # the last operation of a step on the compute stream is its end
        if made[position].duration_ps:
            records.append(StreamOperation(timeline.COMPUTE, step.layer, step.pass_, start, end, 0))
        if longer := end - start - made[position].duration_ps:
            stalls.append(Stall(step.layer, step.pass_, "contention", step.layer, end - longer, longer))
    for wait in timeline.waits(made, times):
        step = program.steps[origin[wait.waiting][0]]
        launched, blamed = origin[wait.blamed]
        assert blamed is not None, "the compute stream never waits for itself"
        task = program.tasks[blamed]
        cause = _cause(task, launched)
        stalls.append(Stall(step.layer, step.pass_, cause, task.layer, wait.start_ps, wait.end_ps - wait.start_ps))
    starts = [0, *ends[:-1]]
    return IterationSchedule(program, tuple(records), tuple(stalls), tuple(starts), tuple(ends))


def _cause(task: QueuedTask, launched: int) -> str:
    """Why a step waits for a task that the step `launched` launched."""
    if task.stream in (timeline.GATHER, timeline.REDUCE):
        return task.stream
    alone = task.timing != "overlapped" and task.until == launched
    if task.stream == "host" or not alone:
        return task.stream
    return "copy-out" if task.stream == "offload" else "on-demand"
