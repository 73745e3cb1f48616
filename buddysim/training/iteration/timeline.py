"""Start and end of every operation: streams run their operations in order and wait for each other.

Times are integer picoseconds. A stream runs one operation at a time, in order of submission; an operation starts when
the stream is free and every operation that it waits for has ended. CUDA streams and events do the same, and the schemes
need no more: one stream computes, each direction of the link has one, one is the host's own work, one that
of its NVMe drives, and two gather and reduce between GPUs.

Where a copy runs in each direction of a link, both may slow down. Each then proceeds at its fraction of the rate that
it has alone, until one of them ends. So do a gather and a reduction, which divide the link between GPUs equally, and
kernels, from which both take multiprocessors and bandwidth of memory.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import NamedTuple

COMPUTE, OFFLOAD, PREFETCH, HOST, NVME = "compute", "offload", "prefetch", "host", "nvme"
GATHER, REDUCE = "gather", "reduce"
STREAMS = (COMPUTE, OFFLOAD, PREFETCH, HOST, NVME, GATHER, REDUCE)

#: Shown although nothing runs on them.
ALWAYS_SHOWN = (COMPUTE, OFFLOAD, PREFETCH)

#: The two directions of the link to the host.
DIRECTIONS = (OFFLOAD, PREFETCH)

#: Streams that divide a link, each the other's.
_OTHER = {OFFLOAD: PREFETCH, PREFETCH: OFFLOAD, GATHER: REDUCE, REDUCE: GATHER}


class SharedFractions(NamedTuple):
    """Fractions of their rates that streams have left while others run.

    Attributes
    ----------
    offload, prefetch : where both run at once
    compute : while GPUs gather or reduce
    """

    offload: Fraction = Fraction(1)
    prefetch: Fraction = Fraction(1)
    compute: Fraction = Fraction(1)


INDEPENDENT = SharedFractions()


class Operation(NamedTuple):
    """An operation of one stream.

    Attributes
    ----------
    stream : one of `STREAMS`
    duration_ps : at least 0; alone on what it shares with other streams
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

    The work that is left of an operation whose rate may change is counted in parts of a picosecond, so that it stays an
    integer: alone, it does `whole` parts in a picosecond, and `fractions[stream]` of them while it shares.
    """

    def __init__(self, operations: Sequence[Operation], shared: SharedFractions) -> None:
        self.operations = operations
        count = len(operations)
        self.waits = [0] * count  # for ends of others; that of its stream's previous one counts as one
        self.followers: list[list[int]] = [[] for _ in range(count)]
        self.start_ps, self.end_ps = [0] * count, [-1] * count
        self.ended = [False] * count
        self.events: list[tuple[int, int]] = []
        self.running: dict[str, _Running] = {}  # operations whose rate may change, by stream
        fractions = {**shared._asdict(), GATHER: Fraction(1, 2), REDUCE: Fraction(1, 2)}
        self.whole = lcm(*(fraction.denominator for fraction in fractions.values()))
        self.fractions = {stream: int(fraction * self.whole) for stream, fraction in fractions.items()}
        streams = {operation.stream for operation in operations}
        self.slows = shared.compute != 1 and bool(streams & {GATHER, REDUCE})  # whether kernels do
        self.varying = {stream for stream, other in _OTHER.items() if {stream, other} <= streams or self.slows}
        if self.slows:
            self.varying.add(COMPUTE)
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
                continue  # its rate has changed since
            self._end(ended, now)
            for position in self.followers[ended]:
                self.waits[position] -= 1
                if not self.waits[position]:
                    self._start(position, now)
        return OperationTimes(self.start_ps, self.end_ps)

    def _start(self, position: int, now: int) -> None:
        stream, duration_ps, _ = self.operations[position]
        self.start_ps[position] = now
        if stream not in self.varying or not duration_ps:
            self.end_ps[position] = now + duration_ps
            heapq.heappush(self.events, (self.end_ps[position], position))
            return
        one = _Running(position, duration_ps * self.whole, now)
        if stream == COMPUTE:  # slows nothing down
            self.running[stream] = one
            self._expect(stream, one, now)
            return
        self._proceed(now)
        self.running[stream] = one
        self._expect_all(now)

    def _end(self, position: int, now: int) -> None:
        self.ended[position] = True
        stream = self.operations[position].stream
        if stream not in self.running or self.running[stream].position != position:
            return
        if stream == COMPUTE:
            del self.running[stream]
            return
        self._proceed(now)
        del self.running[stream]
        self._expect_all(now)

    def _rate(self, stream: str) -> int:
        running = self.running
        is_shared = GATHER in running or REDUCE in running if stream == COMPUTE else _OTHER[stream] in running
        return self.fractions[stream] if is_shared else self.whole

    def _proceed(self, now: int) -> None:
        """Count what the running operations have done until now."""
        for stream, one in self.running.items():
            one.left -= self._rate(stream) * (now - one.since)
            one.since = now

    def _expect_all(self, now: int) -> None:
        for stream, one in self.running.items():
            self._expect(stream, one, now)

    def _expect(self, stream: str, one: _Running, now: int) -> None:
        """Note when an operation will have ended, at the rate that it has from now on."""
        end = now + max(0, -(-one.left // self._rate(stream)))
        if self.end_ps[one.position] != end:
            self.end_ps[one.position] = end
            heapq.heappush(self.events, (end, one.position))


@dataclass
class _Running:
    """An operation that runs: the parts that are left of it since an instant."""

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
