"""A program on the clock: when everything happens, and where the compute stream stands still."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from buddysim.training.iteration import timeline
from buddysim.training.iteration.memory import Levels
from buddysim.training.iteration.program import Program


class Record(NamedTuple):
    """One operation of a stream: a computation, or a copy of `byte_count` bytes."""

    stream: str
    layer: int
    pass_: str
    start_ps: int
    end_ps: int
    byte_count: int


class Stall(NamedTuple):
    """Time that the compute stream stood still before (or at the end of) a step, and the copy that it waited for.

    Attributes
    ----------
    layer, pass_ : of the step that could not end or begin
    cause : ``"offload"`` or ``"prefetch"`` (a copy overlapped with the computation and took longer), ``"on-demand"`` or
        ``"copy-out"`` (a copy that overlaps with nothing)
    copied_layer : the layer whose map was on its way
    """

    layer: int
    pass_: str
    cause: str
    copied_layer: int
    start_ps: int
    ps: int


_CAUSES = {
    ("offload", "overlapped"): "offload",
    ("offload", "after"): "copy-out",
    ("offload", "before"): "copy-out",
    ("prefetch", "overlapped"): "prefetch",
    ("prefetch", "before"): "on-demand",
    ("prefetch", "after"): "on-demand",
}


@dataclass(frozen=True)
class Schedule:
    """A program on the clock. Steps follow each other without a gap: a step's waiting is part of it."""

    program: Program
    records: tuple[Record, ...]
    stalls: tuple[Stall, ...]
    step_start_ps: tuple[int, ...]
    step_end_ps: tuple[int, ...]

    @property
    def time_ps(self) -> int:
        """From the start of the first step to the end of the last one."""
        return self.step_end_ps[-1]

    @cached_property
    def step_ps(self) -> Levels:
        """How long each step took."""
        return np.array(self.step_end_ps, dtype=np.int64) - np.array(self.step_start_ps, dtype=np.int64)


def operations(program: Program) -> tuple[list[timeline.Operation], list[tuple[int, int | None]]]:
    """The program as operations for streams, and for each its step and its copy (None for a computation).

    A step ends when its computation and its copies have ended; an operation of no duration on the compute stream stands
    for that, so that waiting at the end of the last step counts too.
    """
    made: list[timeline.Operation] = []
    origin: list[tuple[int, int | None]] = []

    def add(stream: str, duration: int, after: tuple[int, ...], step: int, copy: int | None) -> int:
        made.append(timeline.Operation(stream, duration, after))
        origin.append((step, copy))
        return len(made) - 1

    done: tuple[int, ...] = ()  # the end of the step before
    for step in program.steps:
        copies = [program.copies[number] for number in step.copies]
        started = {
            timing: [
                add(copy.direction, copy.duration_ps, done, step.index, copy.number)
                for copy in copies
                if copy.timing == timing
            ]
            for timing in ("before", "overlapped")
        }
        compute = add(timeline.COMPUTE, step.compute_ps, (*done, *started["before"]), step.index, None)
        settled = [compute, *started["overlapped"]]
        for copy in copies:
            if copy.timing == "after":
                after = (settled[-1], compute)
                settled.append(add(copy.direction, copy.duration_ps, after, step.index, copy.number))
        done = (compute,)
        if len(settled) > 1:
            done = (add(timeline.COMPUTE, 0, tuple(settled), step.index, None),)
    return made, origin


def schedule(program: Program) -> Schedule:
    """Puts a program on the clock."""
    made, origin = operations(program)
    times = timeline.run(made)
    records = []
    ends = [0] * len(program.steps)
    for position, (step_index, copy_index) in enumerate(origin):
        step = program.steps[step_index]
        ends[step_index] = max(ends[step_index], times.end_ps[position])
        start, end = times.start_ps[position], times.end_ps[position]
        if copy_index is not None:
            copy = program.copies[copy_index]
            records.append(Record(copy.direction, copy.layer, step.pass_, start, end, copy.byte_count))
        elif made[position].duration_ps:
            records.append(Record(timeline.COMPUTE, step.layer, step.pass_, start, end, 0))
    stalls = []
    for wait in timeline.waits(made, times):
        step = program.steps[origin[wait.waiting][0]]
        blamed = origin[wait.blamed][1]
        assert blamed is not None, "the compute stream never waits for itself"
        copy = program.copies[blamed]
        cause = _CAUSES[copy.direction, copy.timing]
        stalls.append(Stall(step.layer, step.pass_, cause, copy.layer, wait.start_ps, wait.end_ps - wait.start_ps))
    starts = [0, *ends[:-1]]
    return Schedule(program, tuple(records), tuple(stalls), tuple(starts), tuple(ends))
