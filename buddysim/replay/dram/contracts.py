"""Contracts of the policies of device memory."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from buddysim.replay.component.contract import Contract, Subject
from buddysim.replay.dram.trial import DramTrial
from buddysim.replay.parameters import engine_numbers

_REQUESTS = 3000
_BANKS = 8
_ROWS = 6
_LARGEST_PAUSE_PS = 8000


def _trial(subject: Subject) -> DramTrial:
    return DramTrial(engine_numbers(subject.machine, Fraction(1)), subject.machine.policies())


def _requests() -> Iterator[tuple[bool, int, int, int, int]]:
    """Requests to a few banks and rows, in phases of reads and of writes: write, bank, row, bursts, time (ps)."""
    draw = np.random.default_rng(1)
    now = 0
    for number in range(_REQUESTS):
        now += int(draw.integers(0, _LARGEST_PAUSE_PS))
        write = bool(draw.integers(0, 4) == 0) is (number // 500 % 2 == 0)
        yield write, int(draw.integers(_BANKS)), int(draw.integers(_ROWS)), int(draw.integers(1, 5)), now


def _broken_times(subject: Subject) -> Iterator[str]:
    trial = _trial(subject)
    for number, (write, bank, row, bursts, now) in enumerate(_requests()):
        if write:
            accepted_ps, _, _ = trial.write(bank, row, bursts, now)
            if accepted_ps < now:
                yield f"request {number}: a write of {now} ps is accepted at {accepted_ps} ps"
                return
            continue
        expected, arrived, earliest = trial.read(bank, row, bursts, now)
        if arrived < earliest:
            yield f"request {number}: a read of {now} ps arrives at {arrived} ps, on idle memory at {earliest} ps"
            return
        if arrived != expected:
            yield f"request {number}: a read arrives at {arrived} ps, its dry run at {expected} ps"
            return


def _overfull(subject: Subject) -> Iterator[str]:
    trial = _trial(subject)
    for number, (write, bank, row, bursts, now) in enumerate(_requests()):
        if write:
            _, queued, limit = trial.write(bank, row, bursts, now)
            if queued > limit:
                yield f"request {number}: {queued} bursts are queued, the queue holds {limit}"
                return
        else:
            trial.read(bank, row, bursts, now)


def _early_slots(subject: Subject) -> Iterator[str]:
    trial = _trial(subject)
    for number, (write, bank, row, bursts, now) in enumerate(_requests()):
        if write:
            trial.write(bank, row, bursts, now)
        slot = trial.read_slot(bank, number)
        if slot is not None and slot < number:
            yield f"request {number}: a read gets slot {slot}, before {number}"
            return


def _late_refreshes(subject: Subject) -> Iterator[str]:
    trial = _trial(subject)
    for _, bank, _, _, now in _requests():
        refresh = trial.refresh_began(bank, now)
        if refresh is not None and not now - 2 * refresh[1] < refresh[0] <= now:
            yield f"bank {bank} at {now} ps: its last refresh began at {refresh[0]} ps, one every {refresh[1]} ps"
            return


_TIMES = Contract("a read arrives as its dry run says, and not before it could on idle memory", _broken_times)

CONTRACTS = {
    "DRAM model": (_TIMES,),
    "DRAM refresh": (
        Contract("a bank's last refresh is not to come, and at most two intervals ago", _late_refreshes),
        _TIMES,
    ),
    "write drain": (
        Contract("a write queue never holds more than its entries", _overfull, safe=True),
        Contract("a read gets no slot before its first", _early_slots),
        _TIMES,
    ),
}
