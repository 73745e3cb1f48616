"""The optimizer's step of a record: work of its operations, peak of its temporaries."""

from __future__ import annotations

from dataclasses import dataclass

from buddysim.training.autograd.records import AllocationEvent, FreeEvent
from buddysim.training.autograd.tape import Tape
from buddysim.training.networks.recorded.work import OperationWork, work_of


@dataclass(frozen=True)
class RecordedUpdate:
    """An update of all weights.

    Attributes
    ----------
    work : of each operation
    temporary_bytes : peak of what lives during the update alone
    """

    work: tuple[OperationWork, ...]
    temporary_bytes: int


def recorded_update(tape: Tape) -> RecordedUpdate:
    """Return the optimizer's step of a tape."""
    live, total, peak = set[int](), 0, 0
    for event in tape.events:
        if isinstance(event, AllocationEvent) and tape.storages[event.storage].phase == "optimizer":
            live.add(event.storage)
            total += event.bytes
            peak = max(peak, total)
        elif isinstance(event, FreeEvent) and event.storage in live:
            total -= event.bytes
    return RecordedUpdate(tuple(work_of(one) for one in tape.operations if one.phase == "optimizer"), peak)
