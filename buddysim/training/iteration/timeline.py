"""Start and end of every operation: streams run their operations in order and wait for each other.

Times are integer picoseconds. A stream runs one operation at a time, in order of submission; an operation starts when
the stream is free and every operation that it waits for has ended. CUDA streams and events do the same, and the schemes
need no more: one stream computes, each direction of the link has one, and one is the host's own work.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

COMPUTE, OFFLOAD, PREFETCH, HOST = "compute", "offload", "prefetch", "host"
STREAMS = (COMPUTE, OFFLOAD, PREFETCH, HOST)


class Operation(NamedTuple):
    """An operation of one stream.

    Attributes
    ----------
    stream : one of `STREAMS`
    duration_ps : at least 0
    after : positions of operations that must have ended before it starts; all precede it
    """

    stream: str
    duration_ps: int
    after: tuple[int, ...] = ()


@dataclass(frozen=True)
class OperationTimes:
    """When each operation started and ended, in picoseconds, by its position."""

    start_ps: list[int]
    end_ps: list[int]


def run(operations: Sequence[Operation]) -> OperationTimes:
    """Runs the operations: event by event, where an event is the end of an operation.

    Raises
    ------
    ValueError
        where an operation waits for one that isn't before it
    """
    count = len(operations)
    waits = [0] * count  # events that an operation still waits for: the end of its stream's previous one counts as one
    followers: list[list[int]] = [[] for _ in range(count)]
    last: dict[str, int] = {}
    for position, operation in enumerate(operations):
        earlier = set(operation.after)
        if operation.stream in last:
            earlier.add(last[operation.stream])
        for other in earlier:
            if not 0 <= other < position:
                raise ValueError(f"operation {position} waits for operation {other}, which isn't before it")
            followers[other].append(position)
        waits[position] = len(earlier)
        last[operation.stream] = position

    start_ps = [0] * count
    end_ps = [0] * count
    events: list[tuple[int, int]] = []
    for position in range(count):
        if not waits[position]:
            end_ps[position] = operations[position].duration_ps
            heapq.heappush(events, (end_ps[position], position))
    while events:
        now, ended = heapq.heappop(events)
        for position in followers[ended]:
            waits[position] -= 1
            if not waits[position]:
                start_ps[position] = now
                end_ps[position] = now + operations[position].duration_ps
                heapq.heappush(events, (end_ps[position], position))
    return OperationTimes(start_ps, end_ps)


class Wait(NamedTuple):
    """A part of the time that `waiting` stood still, spent on `blamed`."""

    waiting: int
    blamed: int
    start_ps: int
    end_ps: int


def waits(operations: Sequence[Operation], times: OperationTimes, stream: str = COMPUTE) -> list[Wait]:
    """Return the waits of a stream, and the operations of other streams that caused them.

    A wait is attributed from its end backwards. The operation that ended last is the cause for its own duration; if it
    started within the wait, the operation that delayed it is the cause of the rest. Of several operations that ended at
    the same time, the first one counts.
    """
    previous: list[int] = []
    last: dict[str, int] = {}
    for position, operation in enumerate(operations):
        previous.append(last.get(operation.stream, -1))
        last[operation.stream] = position

    result: list[Wait] = []
    for position, operation in enumerate(operations):
        if operation.stream != stream:
            continue
        begin = times.end_ps[previous[position]] if previous[position] >= 0 else 0
        end = times.start_ps[position]
        delayed = position
        parts = []
        while end > begin:
            candidates = [*operations[delayed].after, *([previous[delayed]] if previous[delayed] >= 0 else [])]
            blamed = min((other for other in candidates if times.end_ps[other] == end), default=-1)
            if blamed < 0:
                raise ValueError(f"operation {delayed} starts at {end} ps, when nothing ended that it waits for")
            start = max(times.start_ps[blamed], begin)
            if start < end:
                parts.append(Wait(position, blamed, start, end))
            end, delayed = start, blamed
        result += reversed(parts)
    return result
