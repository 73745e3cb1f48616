"""Start and end of every operation: streams run their operations in order and wait for each other.

Times are integer picoseconds. A stream runs one operation at a time, in order of submission; an operation starts when
the stream is free and every operation that it waits for has ended. CUDA streams and events do the same, and the schemes
need no more: one stream computes, each direction of the link has one, one is the host's own work, one that
of its NVMe drives, and two gather and reduce between GPUs.

Where a copy runs in each direction of a link, both may slow down. Each then proceeds at its fraction of the rate that
it has alone, until one of them ends.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

COMPUTE, OFFLOAD, PREFETCH, HOST, NVME = "compute", "offload", "prefetch", "host", "nvme"
GATHER, REDUCE = "gather", "reduce"
STREAMS = (COMPUTE, OFFLOAD, PREFETCH, HOST, NVME, GATHER, REDUCE)

#: Shown although nothing runs on them.
ALWAYS_SHOWN = (COMPUTE, OFFLOAD, PREFETCH)

#: The two directions of the link to the host.
DIRECTIONS = (OFFLOAD, PREFETCH)

#: Fractions of the rates of offloads and of prefetches that are left where both run at once.
SharedFractions = tuple[Fraction, Fraction]
INDEPENDENT: SharedFractions = (Fraction(1), Fraction(1))


class Operation(NamedTuple):
    """An operation of one stream.

    Attributes
    ----------
    stream : one of `STREAMS`
    duration_ps : at least 0; of a copy, with the link's other direction idle
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


def run(operations: Sequence[Operation], shared: SharedFractions = INDEPENDENT) -> OperationTimes:
    """Runs the operations: event by event, where an event is the end of an operation.

    Raises
    ------
    ValueError
        where an operation waits for one that isn't before it
    """
    return _Run(operations, shared).times()


class _Run:
    """One run.

    The work of a copy that is left is counted in parts of a picosecond, so that it stays an integer: alone, a copy does
    `whole` parts in a picosecond, and `fractions[stream]` of them while the other direction is busy.
    """

    def __init__(self, operations: Sequence[Operation], shared: SharedFractions) -> None:
        self.operations = operations
        count = len(operations)
        self.waits = [0] * count  # for ends of others; that of its stream's previous one counts as one
        self.followers: list[list[int]] = [[] for _ in range(count)]
        self.start_ps, self.end_ps = [0] * count, [-1] * count
        self.ended = [False] * count
        self.events: list[tuple[int, int]] = []
        self.copies: dict[str, _Copy] = {}  # that run, by direction
        self.whole = shared[0].denominator * shared[1].denominator
        self.fractions = {
            stream: int(fraction * self.whole) for stream, fraction in zip(DIRECTIONS, shared, strict=True)
        }
        last: dict[str, int] = {}
        for position, operation in enumerate(operations):
            earlier = set(operation.after)
            if operation.stream in last:
                earlier.add(last[operation.stream])
            for other in earlier:
                if not 0 <= other < position:
                    raise ValueError(f"operation {position} waits for operation {other}, which isn't before it")
                self.followers[other].append(position)
            self.waits[position] = len(earlier)
            last[operation.stream] = position

    def times(self) -> OperationTimes:
        for position in range(len(self.operations)):
            if not self.waits[position]:
                self._start(position, 0)
        while self.events:
            now, ended = heapq.heappop(self.events)
            if self.ended[ended] or self.end_ps[ended] != now:
                continue  # of a copy whose rate has changed since
            self._end(ended, now)
            for position in self.followers[ended]:
                self.waits[position] -= 1
                if not self.waits[position]:
                    self._start(position, now)
        return OperationTimes(self.start_ps, self.end_ps)

    def _start(self, position: int, now: int) -> None:
        operation = self.operations[position]
        self.start_ps[position] = now
        if operation.stream in DIRECTIONS and operation.duration_ps:
            self._proceed(now)
            self.copies[operation.stream] = _Copy(position, operation.duration_ps * self.whole, now)
            self._expect(now)
            return
        self.end_ps[position] = now + operation.duration_ps
        heapq.heappush(self.events, (self.end_ps[position], position))

    def _end(self, position: int, now: int) -> None:
        self.ended[position] = True
        stream = self.operations[position].stream
        if stream in self.copies and self.copies[stream].position == position:
            self._proceed(now)
            del self.copies[stream]
            self._expect(now)

    def _rate(self, stream: str) -> int:
        return self.fractions[stream] if len(self.copies) == len(DIRECTIONS) else self.whole

    def _proceed(self, now: int) -> None:
        """Count what the running copies have done until now."""
        for stream, copy in self.copies.items():
            copy.left -= self._rate(stream) * (now - copy.since)
            copy.since = now

    def _expect(self, now: int) -> None:
        """Note when the running copies will have ended, at the rates that they have from now on."""
        for stream, copy in self.copies.items():
            end = now + max(0, -(-copy.left // self._rate(stream)))
            if self.end_ps[copy.position] != end:
                self.end_ps[copy.position] = end
                heapq.heappush(self.events, (end, copy.position))


@dataclass
class _Copy:
    """A copy that runs: the parts that are left of it since an instant."""

    position: int
    left: int
    since: int


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
