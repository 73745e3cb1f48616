"""What a tape and a measurement have in common: saved tensors and events in a form that can be equal."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator
from itertools import groupby

from buddysim.training.autograd.records import CUDA_SCRATCH, AllocationEvent, FreeEvent
from buddysim.training.autograd.tape import Tape
from tests.training.transformers.measured import Measured

Rows = Counter[tuple[Hashable, ...]]
Events = list[tuple[str, int, str]]


def saved_of_tape(tape: Tape) -> Rows:
    """Saved tensors of a tape: node, name, shape, type, producer, producer of the storage, and who shares it."""
    return _rows(
        (
            one.storage,
            (one.node, one.name, one.shape, one.dtype.name, one.producer, tape.storages[one.storage].producer),
        )
        for one in tape.saved
    )


def saved_of_measured(measured: Measured) -> Rows:
    """Saved tensors of all measured steps."""
    return _rows(
        (one.storage, (one.node, one.name, one.shape, one.dtype, one.producer, one.storage_producer))
        for step in measured.saved
        for one in step
    )


def _rows(saved: Iterable[tuple[int, tuple[Hashable, ...]]]) -> Rows:
    described = list(saved)
    sharing: dict[int, list[str]] = defaultdict(list)
    for storage, row in described:
        sharing[storage].append(f"{row[0]}.{row[1]}")
    return Counter((*row, tuple(sorted(sharing[storage]))) for storage, row in described)


def events_of_tape(tape: Tape) -> Events:
    """Allocations and frees of a tape behind its setup, with the operator that allocated."""
    return _in_order(
        ("alloc" if isinstance(event, AllocationEvent) else "free", event.bytes, tape.storages[event.storage].producer)
        for event in tape.events
        if isinstance(event, AllocationEvent | FreeEvent)
        and tape.storages[event.storage].phase != "setup"
        and tape.storages[event.storage].producer != CUDA_SCRATCH
    )


def peak_of_tape(tape: Tape) -> int:
    """Peak of a tape in bytes, without memory that CUDA's kernels alone have for themselves."""
    live = peak = 0
    for event in tape.events:
        if not isinstance(event, AllocationEvent | FreeEvent) or tape.storages[event.storage].producer == CUDA_SCRATCH:
            continue
        live += event.bytes if isinstance(event, AllocationEvent) else -event.bytes
        peak = max(peak, live)
    return peak


def events_of_measured(measured: Measured) -> Events:
    """The same of a measurement."""
    producers = {event.storage: event.operator for event in measured.events if event.kind == "alloc"}
    return _in_order(
        (event.kind, event.bytes, producers[event.storage]) for event in measured.events if event.storage in producers
    )


def _in_order(events: Iterable[tuple[str, int, str]]) -> Events:
    """Frees between two allocations have no order of their own, nor have allocations between two frees.

    What has no bytes is no event.
    """
    ordered: Events = []
    for _, run in groupby((event for event in events if event[1]), key=lambda event: event[0]):
        ordered += sorted(run)
    return ordered


def first_difference(expected: Events, simulated: Events) -> str:
    """Where two lists of events part, for messages of tests; empty where they don't."""
    for number, (one, other) in enumerate(zip(expected, simulated, strict=False)):
        if one != other:
            return f"event {number}: expected {one}, found {other}"
    if len(expected) != len(simulated):
        rest = expected[len(simulated) :] or simulated[len(expected) :]
        return f"{len(expected)} events expected, found {len(simulated)}; then {rest[0]}"
    return ""


def differences_of(expected: Rows, simulated: Rows) -> Iterator[str]:
    """Saved tensors that one has and the other hasn't."""
    for row, count in (expected - simulated).items():
        yield f"missing {count} x {row}"
    for row, count in (simulated - expected).items():
        yield f"unexpected {count} x {row}"
