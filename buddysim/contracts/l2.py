"""Contracts of the L2's policies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from buddysim.compress import ENTRY_BYTES
from buddysim.contracts.contract import Contract
from buddysim.contracts.replayed import ReplayedSubject
from buddysim.replay.engine.event_loop import ReplayEngine
from buddysim.replay.primitives.kinds import Placement
from buddysim.replay.schemes import BASELINE, REGISTRY

_ENTRIES = 2**22
_AT_A_TIME = 128


def _slices(subject: ReplayedSubject, entries: Sequence[int], eight_at_a_time: bool) -> list[int]:
    """The slices of lines, as the engine locates them."""
    allocations = np.array([[0, _ENTRIES, Placement.DEVICE, 4]], dtype=np.int64)
    scheme, policies = REGISTRY.find(BASELINE)(), subject.machine.policies()
    engine = ReplayEngine(subject.numbers, allocations, np.zeros(_ENTRIES, np.uint8), scheme, policies)
    parts = [entries[first : first + _AT_A_TIME] for first in range(0, len(entries), _AT_A_TIME)]
    return [int(line["slice"]) for part in parts for line in engine.locations(list(part), eight_at_a_time)]


def _tried(subject: ReplayedSubject) -> Iterator[tuple[int, int, int]]:
    """Lines of the first groups of units, and others anywhere: of each its slice located alone, and among eight."""
    unit = subject.machine.l2.interleave_granularity // ENTRY_BYTES
    entries = [number * unit for number in range(4 * subject.machine.l2.slices)]
    entries += np.random.default_rng(1).integers(0, _ENTRIES, 4096).tolist()
    return zip(entries, _slices(subject, entries, False), _slices(subject, entries, True), strict=True)


def _beyond(subject: ReplayedSubject) -> Iterator[str]:
    number = subject.machine.l2.slices
    for entry, *slices in _tried(subject):
        if max(slices) >= number:
            yield f"line {entry}: slice {max(slices)}: expected a number below {number}"


def _by_neighbours(subject: ReplayedSubject) -> Iterator[str]:
    for entry, alone, of_eight in _tried(subject):
        if alone != of_eight:
            yield f"line {entry}: slice {alone} alone, {of_eight} among eight"


def _crowded(subject: ReplayedSubject) -> Iterator[str]:
    unit, slices = subject.machine.l2.interleave_granularity // ENTRY_BYTES, subject.machine.l2.slices
    for group in (0, 1, 7, 1000 % (_ENTRIES // (unit * slices))):
        first = group * slices
        group_slices = set(_slices(subject, [(first + number) * unit for number in range(slices)], False))
        if len(group_slices) < slices:
            yield f"units {first} to {first + slices - 1}: {len(group_slices)} slices of {slices}: expected each once"


CONTRACTS = {
    "slice hash": (
        Contract("slices are below their number", _beyond, safe=True),
        Contract("a line has one slice, located alone or with seven others", _by_neighbours),
        Contract("each aligned group of as many units as there are slices has one in every slice", _crowded, safe=True),
    )
}
