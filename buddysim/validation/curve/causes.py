"""What-if replays: how far one changed machine key moves a point of a curve."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from buddysim.machine import Machine
from buddysim.validation.curve.curve_data import SHARED, STREAM, MeasuredCurve
from buddysim.validation.curve.replays import replay_point

_REFRESH: dict[str, object] = {"dram.refresh": "single_bank"}
_STARTS = _REFRESH | {"kernel.warp_launch_interval": "10 core_cycles"}
CHANGES: tuple[tuple[str, dict[str, object], str, int], ...] = (
    ("single-bank refresh", _REFRESH, f"{STREAM}init", -1),
    ("single-bank refresh", _REFRESH, f"{STREAM}read", -1),
    ("single-bank refresh", _REFRESH, SHARED, 24),
    ("also 10 cycles per starting warp", _STARTS, f"{STREAM}init", 7),
    ("also 10 cycles per starting warp", _STARTS, f"{STREAM}read", -1),
    ("also 10 cycles per starting warp", _STARTS, f"{STREAM}scale", 10),
    ("warps exit after their stores", {"sm.exit_waits_for_stores": True}, f"{STREAM}init", 0),
    ("write drain interleaved with reads", {"dram.write_drain": "interleaved"}, f"{STREAM}scale", 5),
    ("high watermark of 64 bursts", {"dram.write_high_watermark": 64}, f"{STREAM}scale", -1),
)
"""Name of a change, its machine keys, and the point that shows it: a benchmark, an index of its compared points."""


@dataclass(frozen=True)
class WhatIfReplay:
    """A quantity: measured, replayed, and replayed on a machine with one change.

    Attributes
    ----------
    change : what differs on the other machine
    quantity : name and unit
    measured, simulated, what_if : on the GPU, on the fitted machine, on the changed machine
    """

    change: str
    quantity: str
    measured: float
    simulated: float
    what_if: float


def replay_what_ifs(machine: Machine, curves: Sequence[MeasuredCurve]) -> Iterator[WhatIfReplay]:
    """Yield what another refresh, slower starts, other drains, and exits after stores change for a card.

    Parameters
    ----------
    machine : at the card's clocks, fitted
    curves : of the card
    """
    by_name = {curve.benchmark: curve for curve in curves}
    for change, keys, benchmark, point in CHANGES:
        curve = by_name.get(benchmark)
        points = curve.compared() if curve is not None else []
        if curve is None or not -len(points) <= point < len(points):  # a user's own curve may have fewer points
            continue
        other = machine.with_overrides(keys)
        x, y = points[point]
        quantity = f"{curve.benchmark} at {f'{x:,.0f} KiB' if benchmark == SHARED else f'{x:g} %'}, GB/s"
        simulated, what_if = replay_point(machine, curve, x), replay_point(other, curve, x)
        if simulated is not None and what_if is not None:
            yield WhatIfReplay(change, quantity, y, simulated, what_if)
