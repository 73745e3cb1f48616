"""Contracts of the policies of device memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from buddysim.contracts.contract import Contract
from buddysim.contracts.replayed import ReplayedSubject
from buddysim.contracts.trials import DramTrial

_REQUESTS = 3000
_BANKS = 8
_ROWS = 6
_LARGEST_PAUSE_PS = 8000


class Answered(NamedTuple):
    """A request to device memory: its number, what was requested, the answer (`DramTrial`), the memory after it."""

    number: int
    write: bool
    bank: int
    now_ps: int
    answer: tuple[int, int, int]
    memory: DramTrial


def _answered(subject: ReplayedSubject) -> Iterator[Answered]:
    """Requests to a few banks and rows, in phases of reads and of writes."""
    memory = DramTrial(subject.numbers, subject.machine.policies())
    draw = np.random.default_rng(1)
    now = 0
    for number in range(_REQUESTS):
        now += int(draw.integers(0, _LARGEST_PAUSE_PS))
        write = bool(draw.integers(0, 4) == 0) is (number // 500 % 2 == 0)
        bank, row, bursts = int(draw.integers(_BANKS)), int(draw.integers(_ROWS)), int(draw.integers(1, 5))
        answer = (memory.write if write else memory.read)(bank, row, bursts, now)
        yield Answered(number, write, bank, now, answer, memory)


def _broken_times(subject: ReplayedSubject) -> Iterator[str]:
    for one in _answered(subject):
        first, arrived, earliest = one.answer
        if one.write:
            if first < one.now_ps:
                yield f"request {one.number}: a write of {one.now_ps} ps is accepted at {first} ps"
        elif arrived < earliest:
            yield (
                f"request {one.number}: a read of {one.now_ps} ps arrives at {arrived} ps, "
                f"on idle memory at {earliest} ps"
            )
        elif arrived != first:
            yield f"request {one.number}: a read arrives at {arrived} ps, its dry run at {first} ps"


def _overfull(subject: ReplayedSubject) -> Iterator[str]:
    for one in _answered(subject):
        _, queued, limit = one.answer
        if one.write and queued > limit:
            yield f"request {one.number}: {queued} bursts are queued, the queue holds {limit}"


def _early_slots(subject: ReplayedSubject) -> Iterator[str]:
    for one in _answered(subject):
        slot = one.memory.read_slot(one.bank, one.number)
        if slot is not None and slot < one.number:
            yield f"request {one.number}: a read gets slot {slot}, before {one.number}"


def _late_refreshes(subject: ReplayedSubject) -> Iterator[str]:
    for one in _answered(subject):
        refresh = one.memory.refresh_began(one.bank, one.now_ps)
        if refresh is not None and not one.now_ps - 2 * refresh[1] < refresh[0] <= one.now_ps:
            yield (
                f"bank {one.bank} at {one.now_ps} ps: its last refresh began at {refresh[0]} ps, "
                f"one every {refresh[1]} ps"
            )


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
