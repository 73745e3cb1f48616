"""Why curves miss their goals: replays in which one thing that is not modelled is taken differently."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from buddysim.machine import Machine
from buddysim.validation.curve.measured import CHASE, STREAM, Curve
from buddysim.validation.curve.measures import knee, levels
from buddysim.validation.curve.replays import chase, stream

_KIB = 1024
PARTITIONED = ("a100", "h100", "h200", "gh200")
"""Presets of chips whose L2 has two partitions (NVIDIA's whitepapers of the A100 and the H100)."""


@dataclass(frozen=True)
class Cause:
    """A quantity measured, replayed, and replayed on a machine that differs in one thing."""

    changed: str
    quantity: str
    measured: float
    replayed: float
    otherwise: float


def causes(name: str, machine: Machine, curves: Sequence[Curve]) -> Iterator[Cause]:
    """What follows for a card from half an L2, where it has partitions, and from a refresh that takes no time.

    Parameters
    ----------
    name : of the preset
    machine : at the card's clocks, fitted
    curves : of the card
    """
    if name in PARTITIONED:
        half = machine.with_overrides({"l2.size": f"{machine.l2.size // 2} B"})
        for curve in curves:
            if curve.benchmark == CHASE and curve.source == "RRZE-HPC":
                both = [l2_knee(curve, machine, one) for one in (machine, half)]
                theirs = knee(curve.compared(), *levels(machine)[1:], is_latency=True)
                if theirs is not None and None not in both:
                    yield Cause("one partition: half of the L2", "knee behind the L2, KiB", theirs, *both)  # type: ignore[arg-type]
    free = machine.with_overrides({"dram.timing.tREFI": "0 ns"})
    for curve in curves:
        if curve.benchmark in (f"{STREAM}init", f"{STREAM}read"):
            x, y = curve.x[-1], curve.y[-1]
            yield Cause(
                "no refresh",
                f"{curve.benchmark} at {x:g} %, GB/s",
                y,
                stream(machine, curve, x),
                stream(free, curve, x),
            )


def l2_knee(curve: Curve, machine: Machine, changed: Machine) -> float | None:
    """The knee behind the L2 of a chase replayed on a machine, KiB; plateaus are where `machine` has them."""
    _, before, behind = levels(machine)
    least, most = before.most / 2, behind.least
    points = [(x, chase(changed, round(x * _KIB), 128)) for x, _ in curve.compared() if least <= x <= most]
    return knee([*points, (behind.least, points[-1][1])], before, behind, is_latency=True)
