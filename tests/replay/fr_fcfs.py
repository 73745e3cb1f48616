"""A pseudo-channel with a queue, served first-ready, first come, first served: command by command, without
calendars.

Each bank wants a command: a column command of its oldest request whose row is open; where there is none, a precharge,
and then an activation of the row of its oldest request. The command that can be issued first is; of several, column
commands first, then activations, then those of older requests. The queue has no limit; the command bus carries any
number of commands.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

COLUMN, ACTIVATE, PRECHARGE = range(3)


@dataclass(frozen=True)
class Timing:
    """In ps; `burst` is the data bus's time of 32 B."""

    burst: int
    rcd: int
    rp: int
    cl: int
    ras: int
    ccd_l: int
    rtp: int
    rrd: int
    faw: int


@dataclass
class Bank:
    """A bank's open row and when it can take its next commands."""

    group: int
    row: int | None = None
    column_ps: int = 0
    precharge_ps: int = 0
    activate_ps: int = 0
    queue: list[int] = field(default_factory=list)  # requests, the oldest first


def read_ends(requests: list[tuple[int, int, int]], banks: int, groups: int, timing: Timing) -> list[int]:
    """When the data of each read of one burst end.

    Parameters
    ----------
    requests : (arrival in ps, bank, row), by arrival
    banks, groups : of the pseudo-channel; bank b is in group b modulo groups
    timing : of the memory
    """
    state = [Bank(bank % groups) for bank in range(banks)]
    ends = [0] * len(requests)
    group_column_ps, bus_free_ps = [0] * groups, 0
    activations: deque[int] = deque([-timing.faw] * 4, maxlen=4)
    now = arrived = done = 0
    while done < len(requests):
        best: tuple[int, int, int, Bank] | None = None  # time, command, request, bank
        for bank in state:
            if not bank.queue:
                continue
            hit = next((number for number in bank.queue if requests[number][2] == bank.row), None)
            if hit is not None:
                t = max(now, bank.column_ps, group_column_ps[bank.group], bus_free_ps - timing.cl)
                found = (t, COLUMN, hit, bank)
            elif bank.row is None:
                t = max(now, bank.activate_ps, activations[-1] + timing.rrd, activations[0] + timing.faw)
                found = (t, ACTIVATE, bank.queue[0], bank)
            else:
                found = (max(now, bank.precharge_ps), PRECHARGE, bank.queue[0], bank)
            if best is None or found[:3] < best[:3]:
                best = found
        if arrived < len(requests) and (best is None or requests[arrived][0] <= best[0]):
            now = max(now, requests[arrived][0])
            state[requests[arrived][1]].queue.append(arrived)
            arrived += 1
            continue
        assert best is not None
        t, command, number, bank = best
        if command == PRECHARGE:
            bank.row, bank.activate_ps = None, t + timing.rp
        elif command == ACTIVATE:
            bank.row = requests[number][2]
            bank.column_ps, bank.precharge_ps = t + timing.rcd, t + timing.ras
            activations.append(t)
        else:
            bank.queue.remove(number)
            group_column_ps[bank.group] = t + timing.ccd_l
            bank.precharge_ps = max(bank.precharge_ps, t + timing.rtp)
            bus_free_ps = t + timing.cl + timing.burst
            ends[number] = bus_free_ps
            done += 1
    return ends
