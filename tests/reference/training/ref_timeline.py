"""The timeline in its plainest form: go over the streams again and again, and start what may start.

The reference model of `timeline`. At an instant, each stream looks at its first operation that hasn't started; when
that is free to go, it starts. Then the clock moves on to the next end of an operation that runs; or, where both
directions of a link slow down, or kernels next to collectives, by a picosecond, in which an operation does its fraction
of a picosecond's work.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from buddysim.training.iteration.timeline import INDEPENDENT, Operation, OperationTimes, SharedFractions


def _rate(stream: str, busy: set[str], shared: SharedFractions) -> Fraction:
    """What a stream does of its work in a picosecond."""
    if {"offload", "prefetch"} <= busy and stream in ("offload", "prefetch"):
        return shared.offload if stream == "offload" else shared.prefetch
    if {"gather", "reduce"} <= busy and stream in ("gather", "reduce"):
        return Fraction(1, 2)
    if {"gather", "reduce"} & busy and stream == "compute":
        return shared.compute
    return Fraction(1)


def ref_run_shared(operations: Sequence[Operation], shared: SharedFractions) -> OperationTimes:
    """Reference model of `timeline.run` with what streams share: picosecond by picosecond."""
    left: dict[int, Fraction] = {}
    start = [-1] * len(operations)
    end = [-1] * len(operations)
    now = 0
    while -1 in end:
        changed = True
        while changed:
            changed = False
            for position, operation in enumerate(operations):
                before = [p for p in range(position) if operations[p].stream == operation.stream]
                if start[position] < 0 and all(end[p] >= 0 for p in (*before, *operation.after)):
                    start[position] = now
                    left[position] = Fraction(operation.duration_ps)
                    changed = True
                if position in left and left[position] <= 0:
                    end[position] = now
                    del left[position]
                    changed = True
        busy = {operations[p].stream for p in left}
        for position in left:
            left[position] -= _rate(operations[position].stream, busy, shared)
        now += 1
    return OperationTimes(start, end)


def ref_run(operations: Sequence[Operation], shared: SharedFractions = INDEPENDENT) -> OperationTimes:
    """Reference model of `buddysim.training.iteration.timeline.run`."""
    if shared != INDEPENDENT or {"gather", "reduce"} <= {operation.stream for operation in operations}:
        return ref_run_shared(operations, shared)
    start: list[int | None] = [None] * len(operations)
    end: list[int | None] = [None] * len(operations)
    now = 0

    def ended(position: int) -> bool:
        finish = end[position]
        return finish is not None and finish <= now

    def may_start(position: int) -> bool:
        operation = operations[position]
        before_in_stream = [p for p in range(position) if operations[p].stream == operation.stream]
        return all(map(ended, before_in_stream)) and all(map(ended, operation.after))

    while None in start:
        started = True
        while started:  # an operation of no duration lets others start at the same instant
            started = False
            for position, operation in enumerate(operations):
                if start[position] is None and may_start(position):
                    start[position] = now
                    end[position] = now + operation.duration_ps
                    started = True
        if None in start:
            now = min(finish for finish in end if finish is not None and finish > now)
    return OperationTimes(
        [value for value in start if value is not None], [value for value in end if value is not None]
    )
