"""Contracts of the L1's policies."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from buddysim.contracts.contract import Contract
from buddysim.contracts.replayed import ReplayedSubject
from buddysim.contracts.trials import entry_times

_INSTRUCTIONS = 500
_LARGEST_PAUSE_PS = 3000


def _instructions() -> list[tuple[int, list[int]]]:
    """Instructions of 1 to 32 lines, each with some sectors, some of which queue behind earlier ones."""
    draw = np.random.default_rng(1)
    issued = np.cumsum(draw.integers(0, _LARGEST_PAUSE_PS, _INSTRUCTIONS))
    return [(int(now), draw.integers(1, 16, draw.integers(1, 33)).tolist()) for now in issued]


def _early(subject: ReplayedSubject) -> Iterator[str]:
    instructions = _instructions()
    times = entry_times(subject.numbers, subject.member(), instructions)
    for number, ((now, sectors), (entered, arrival)) in enumerate(zip(instructions, times, strict=True)):
        if min(entered) < now:
            yield f"instruction {number}, issued at {now} ps: a line of {len(sectors)} enters at {min(entered)} ps"
        if arrival < max(entered):
            yield f"instruction {number}: arrived at {arrival} ps, its last line enters at {max(entered)} ps"


CONTRACTS = {"L1 banking": (Contract("no line enters before its instruction is issued", _early),)}
