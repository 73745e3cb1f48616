"""Why curves miss their goals: replays in which one thing is taken differently."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from buddysim.machine import Machine
from buddysim.validation.curve.curve_data import SHARED, STREAM, MeasuredCurve
from buddysim.validation.curve.replays import replayed

_REFRESH: dict[str, object] = {"dram.refresh": "single_bank"}
_STARTS = _REFRESH | {"kernel.warp_launch_interval": "10 core_cycles"}
CHANGES: tuple[tuple[str, dict[str, object], str, int], ...] = (
    ("refresh of single banks", _REFRESH, f"{STREAM}init", -1),
    ("refresh of single banks", _REFRESH, f"{STREAM}read", -1),
    ("refresh of single banks", _REFRESH, SHARED, 24),
    ("the same, 10 cycles a warp that starts", _STARTS, f"{STREAM}init", 7),
    ("the same, 10 cycles a warp that starts", _STARTS, f"{STREAM}read", -1),
    ("the same, 10 cycles a warp that starts", _STARTS, f"{STREAM}scale", 10),
    ("ends wait for stores", {"sm.end_waits_for_stores": True}, f"{STREAM}init", 0),
    ("reads among a drain's bursts", {"dram.drains": "among_reads"}, f"{STREAM}scale", 5),
    ("drains from 64 bursts on", {"dram.write_high": 64}, f"{STREAM}scale", -1),
)
"""What is changed, the keys, and where it shows: a benchmark, and which of its compared points."""


@dataclass(frozen=True)
class WhatIfReplay:
    """A quantity measured, replayed, and replayed on a machine that differs in one thing."""

    changed: str
    quantity: str
    measured: float
    replayed: float
    otherwise: float


def causes(machine: Machine, curves: Sequence[MeasuredCurve]) -> Iterator[WhatIfReplay]:
    """What follows for a card from another refresh, slower starts, other drains, and ends that wait for stores.

    Parameters
    ----------
    machine : at the card's clocks, fitted
    curves : of the card
    """
    by_name = {curve.benchmark: curve for curve in curves}
    for changed, keys, benchmark, point in CHANGES:
        curve = by_name.get(benchmark)
        if curve is None:
            continue
        other = machine.with_overrides(keys)
        x, y = curve.compared()[point]
        quantity = f"{curve.benchmark} at {f'{x:,.0f} KiB' if benchmark == SHARED else f'{x:g} %'}, GB/s"
        ours, otherwise = replayed(machine, curve, x), replayed(other, curve, x)
        if ours is not None and otherwise is not None:
            yield WhatIfReplay(changed, quantity, y, ours, otherwise)
