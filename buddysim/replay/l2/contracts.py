"""Contracts of the L2's policies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from buddysim.compress import ENTRY_BYTES
from buddysim.replay.component.contract import Contract, Subject
from buddysim.replay.engine.event_loop import ReplayEngine
from buddysim.replay.engine.kinds import Placement
from buddysim.replay.parameters import engine_numbers
from buddysim.replay.schemes import BASELINE, REGISTRY

_ENTRIES = 2**22
_AT_A_TIME = 128


def _slices(subject: Subject, entries: Sequence[int], eight_at_a_time: bool) -> list[int]:
    """The slices of lines, as the engine locates them."""
    machine = subject.machine
    allocations = np.array([[0, _ENTRIES, Placement.DEVICE, 4]], dtype=np.int64)
    classes = np.zeros(_ENTRIES, np.uint8)
    engine = ReplayEngine(
        engine_numbers(machine, Fraction(1)), allocations, classes, REGISTRY.find(BASELINE)(), machine.policies()
    )
    parts = [entries[first : first + _AT_A_TIME] for first in range(0, len(entries), _AT_A_TIME)]
    return [int(line["slice"]) for part in parts for line in engine.locations(list(part), eight_at_a_time)]


def _tried(subject: Subject) -> list[int]:
    """Lines of the first groups of units, and others anywhere."""
    unit = subject.machine.l2.interleave_granularity // ENTRY_BYTES
    first = [number * unit for number in range(4 * subject.machine.l2.slices)]
    return first + [int(entry) for entry in np.random.default_rng(1).integers(0, _ENTRIES, 4096)]


def _beyond(subject: Subject) -> Iterator[str]:
    number = subject.machine.l2.slices
    for eight_at_a_time in (False, True):
        entries = _tried(subject)
        for entry, one in zip(entries, _slices(subject, entries, eight_at_a_time), strict=True):
            if one >= number:
                yield f"line {entry}: slice {one}: expected a number below {number}"
                return


def _by_neighbours(subject: Subject) -> Iterator[str]:
    entries = _tried(subject)
    alone, of_eight = (_slices(subject, entries, eight) for eight in (False, True))
    for entry, one, other in zip(entries, alone, of_eight, strict=True):
        if one != other:
            yield f"line {entry}: slice {one} alone, {other} among eight"
            return


def _crowded(subject: Subject) -> Iterator[str]:
    unit, slices = subject.machine.l2.interleave_granularity // ENTRY_BYTES, subject.machine.l2.slices
    for group in (0, 1, 7, 1000 % (_ENTRIES // (unit * slices))):
        first = group * slices
        group_slices = set(_slices(subject, [(first + number) * unit for number in range(slices)], False))
        if len(group_slices) < slices:
            yield f"units {first} to {first + slices - 1}: {len(group_slices)} slices of {slices}: expected each once"
            return


CONTRACTS = {
    "slice hash": (
        Contract("slices are below their number", _beyond, safe=True),
        Contract("a line has one slice, located alone or with seven others", _by_neighbours),
        Contract("each aligned group of as many units as there are slices has one in every slice", _crowded, safe=True),
    )
}
