"""Why curves miss their goals: replays in which one thing is taken differently."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from buddysim.machine import Machine
from buddysim.validation.curve.measured import STREAM, Curve
from buddysim.validation.curve.replays import stream

CHANGES = (
    ("refresh of single banks", {"dram.refresh": "single_bank"}, "init", -1),
    ("refresh of single banks", {"dram.refresh": "single_bank"}, "read", -1),
    ("ends don't wait for stores", {"sm.end_waits_for_stores": False}, "init", 0),
    ("ends don't wait for stores", {"sm.end_waits_for_stores": False}, "scale", 5),
)
"""What is changed, the keys, and where it shows: a kernel of STREAM, and which of the compared occupancies."""


@dataclass(frozen=True)
class Cause:
    """A quantity measured, replayed, and replayed on a machine that differs in one thing."""

    changed: str
    quantity: str
    measured: float
    replayed: float
    otherwise: float


def causes(machine: Machine, curves: Sequence[Curve]) -> Iterator[Cause]:
    """What follows for a card from another refresh, and from warps that end before their stores are acknowledged.

    Parameters
    ----------
    machine : at the card's clocks, fitted
    curves : of the card
    """
    by_name = {curve.benchmark: curve for curve in curves}
    for changed, keys, kernel, point in CHANGES:
        curve = by_name.get(f"{STREAM}{kernel}")
        if curve is None:
            continue
        other = machine.with_overrides(keys)
        x, y = curve.compared()[point]
        quantity = f"{curve.benchmark} at {x:g} %, GB/s"
        yield Cause(changed, quantity, y, stream(machine, curve, x), stream(other, curve, x))
