"""Pinned host memory of an iteration: its peak, and whether it suffices.

A region is pinned when a copy to the host is launched, and unpinned when the copy back is over (vDNN, Section III-B).
It holds the copied feature map or encoding. If the host encodes it again, the smaller region replaces it after the step
that waits for the host. Weights, gradients and optimizer state of the host are counted as if pinned throughout.
"""

from __future__ import annotations

from collections.abc import Iterator

from buddysim.training.iteration.memory_usage import FailedRequest
from buddysim.training.iteration.program import Program, QueuedTask, Step


def host_pinned(program: Program) -> tuple[int, int]:
    """The most pinned host memory in use at once, in bytes, and the step at which it is reached."""
    most, at = program.host_bytes, 0
    for step, _, pinned in _regions(program):
        if pinned > most:
            most, at = pinned, step.index
    return most, at


def host_failure(program: Program, bound: int) -> FailedRequest | None:
    """The first region that exceeds the limit of pinned host memory; None if none does."""
    most, _ = host_pinned(program)
    if program.host_bytes > bound:
        free = max(0, bound)
        return FailedRequest("host", None, "resident", "weights", program.host_bytes, free, free, most - bound)
    for step, task, pinned in _regions(program):
        if pinned > bound:
            free = bound - (pinned - task.pins)
            return FailedRequest("host", task.layer, step.pass_, "feature_maps", task.pins, free, free, most - bound)
    return None


def _regions(program: Program) -> Iterator[tuple[Step, QueuedTask, int]]:
    """Each task that pins memory, with its step and the bytes pinned then."""
    unpinned = [0] * len(program.steps)
    for task in program.tasks:
        unpinned[task.until] += task.unpins
    pinned = program.host_bytes
    for step in program.steps:
        for number in step.tasks:
            if program.tasks[number].pins:
                pinned += program.tasks[number].pins
                yield step, program.tasks[number], pinned
        pinned -= unpinned[step.index]
