"""The timeline in its plainest form: go over the streams again and again, and start what may start.

The reference model of `timeline`. At an instant, each stream looks at its first operation that hasn't started; when
that is free to go, it starts. Then the clock moves on to the next end of an operation that runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from buddysim.training.iteration.timeline import Operation, OperationTimes


def ref_run(operations: Sequence[Operation]) -> OperationTimes:
    """Reference model of `buddysim.training.iteration.timeline.run`."""
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
