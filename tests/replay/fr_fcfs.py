"""A pseudo-channel with queues, served first-ready, first come, first served: command by command, without
reservation tables.

Each bank requests a command: a column command of its oldest request whose row is open; without one a precharge, then an
activation of the row of its oldest request. The command that can be issued first is issued. Of several, column commands
come first, then activations, then commands of older requests. Writes are drained together: from `high` queued writes,
or from `low` if no read waits, until `low` are left, or none if no read waits. Queues have no limit; the command bus
carries any number of commands.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

COLUMN, ACTIVATE, PRECHARGE = range(3)


@dataclass(frozen=True)
class Timing:
    """Timings in ps; `burst` is the time of 32 B on the data bus."""

    burst: int
    rcd: int
    rp: int
    cl: int
    ras: int
    ccd_l: int
    rtp: int
    rrd: int
    faw: int
    cwl: int = 0
    wr: int = 0
    wtr: int = 0
    rtw: int = 0


@dataclass(frozen=True)
class Request:
    """A request of one burst."""

    arrival_ps: int
    bank: int
    row: int
    write: bool = False


@dataclass
class Bank:
    """A bank's open row, and the earliest times of its next commands."""

    group: int
    row: int | None = None
    column_ps: int = 0
    precharge_ps: int = 0
    activate_ps: int = 0
    queues: tuple[list[int], list[int]] = field(default_factory=lambda: ([], []))  # reads and writes, the oldest first


class Channel:
    """A pseudo-channel: `ends` are when the data of each request end, once `serve` has been called.

    Parameters
    ----------
    requests : by arrival
    banks, groups : of the pseudo-channel; bank b is in group b modulo groups
    timing : of the memory
    high, low : queued writes that start a drain, and that end it
    """

    def __init__(
        self, requests: list[Request], banks: int, groups: int, timing: Timing, high: int = 64, low: int = 16
    ) -> None:
        self.requests, self.timing, self.high, self.low = requests, timing, high, low
        self.banks = [Bank(bank % groups) for bank in range(banks)]
        self.group_column_ps = [0] * groups
        self.data_ps = [0, 0]  # no read data, no write data before
        self.activations: deque[int] = deque([-timing.faw] * 4, maxlen=4)
        self.waiting = [0, 0]
        self.draining_to: int | None = None
        self.now = 0
        self.ends = [0] * len(requests)

    def serve(self) -> list[int]:
        """Serve all requests; queued writes below the low watermark are written at the end."""
        arrived = done = 0
        while done < len(self.requests):
            self._turnaround(arrived == len(self.requests))
            writes = self.draining_to is not None
            best = min(filter(None, (self._next_command(bank, writes) for bank in self.banks)), default=None)
            if arrived < len(self.requests) and (best is None or self.requests[arrived].arrival_ps <= best[0]):
                request = self.requests[arrived]
                self.now = max(self.now, request.arrival_ps)
                self.banks[request.bank].queues[request.write].append(arrived)
                self.waiting[request.write] += 1
                arrived += 1
            elif best is not None:
                done += self._issue(*best)
        return self.ends

    def _turnaround(self, last: bool) -> None:
        """Begin or end a drain."""
        reads, writes = self.waiting
        if self.draining_to is not None and writes <= self.draining_to:
            self.draining_to = None
        if self.draining_to is None:
            if not reads and writes and (writes >= self.low or last):
                self.draining_to = 0
            elif writes >= self.high:
                self.draining_to = self.low

    def _next_command(self, bank: Bank, writes: bool) -> tuple[int, int, int] | None:
        """Return the bank's next command: its time, its kind, its request."""
        queue = bank.queues[writes]
        if not queue:
            return None
        hit = next((number for number in queue if self.requests[number].row == bank.row), None)
        if hit is not None:
            delay = self.timing.cwl if writes else self.timing.cl
            ready = max(bank.column_ps, self.group_column_ps[bank.group], self.data_ps[writes] - delay)
            return max(self.now, ready), COLUMN, hit
        if bank.row is None:
            allowed = max(self.activations[-1] + self.timing.rrd, self.activations[0] + self.timing.faw)
            return max(self.now, bank.activate_ps, allowed), ACTIVATE, queue[0]
        return max(self.now, bank.precharge_ps), PRECHARGE, queue[0]

    def _issue(self, t: int, command: int, number: int) -> int:
        """Issue a command at `t`; return the number of requests that it serves."""
        request, timing = self.requests[number], self.timing
        bank = self.banks[request.bank]
        if command == PRECHARGE:
            bank.row, bank.activate_ps = None, t + timing.rp
            return 0
        if command == ACTIVATE:
            bank.row, bank.column_ps, bank.precharge_ps = request.row, t + timing.rcd, t + timing.ras
            self.activations.append(t)
            return 0
        bank.queues[request.write].remove(number)
        self.waiting[request.write] -= 1
        self.group_column_ps[bank.group] = t + timing.ccd_l
        end = t + (timing.cwl if request.write else timing.cl) + timing.burst
        if request.write:
            self.data_ps = [end + timing.wtr + timing.cl, end]
            bank.precharge_ps = max(bank.precharge_ps, end + timing.wr)
        else:
            self.data_ps = [end, max(end, t + timing.rtw + timing.cwl)]
            bank.precharge_ps = max(bank.precharge_ps, t + timing.rtp)
        self.ends[number] = end
        return 1
