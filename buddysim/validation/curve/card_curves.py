"""The curves of a card: measured and replayed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from buddysim.machine import Machine
from buddysim.validation.curve.causes import WhatIfReplay
from buddysim.validation.curve.curve_data import STREAM, STRIDES, Card, MeasuredCurve
from buddysim.validation.curve.fit import Fit
from buddysim.validation.curve.metrics import absolute_errors, capacity_transition, levels


@dataclass(frozen=True)
class CurveReplay:
    """A measured curve and its replay.

    Attributes
    ----------
    curve : the measured curve
    machine : the machine that replayed it
    points : x, measured and simulated
    fitted : x of the points that the fit has used
    """

    curve: MeasuredCurve
    machine: Machine
    points: Sequence[tuple[float, float, float]]
    fitted: frozenset[float]

    @property
    def errors(self) -> list[float]:
        """Error of each point."""
        simulated = [value for _, _, value in self.points]
        return absolute_errors(simulated, [measured for _, measured, _ in self.points])

    @property
    def held_out(self) -> list[float]:
        """Errors of the points that the fit has not used."""
        return [error for (x, _, _), error in zip(self.points, self.errors, strict=True) if x not in self.fitted]

    def capacity_transitions(self) -> Iterator[tuple[str, float, float | None]]:
        """Yield the level that each transition of the measured curve leaves, and its footprint, measured and simulated.

        Footprints are in KiB.
        """
        if self.curve.benchmark.startswith(STREAM) or self.curve.benchmark == STRIDES:
            return
        measured = [(x, y) for x, y, _ in self.points]
        simulated = [(x, y) for x, _, y in self.points]
        for before, behind in pairwise(levels(self.machine)):
            footprint = capacity_transition(measured, before, behind, self.curve.is_latency)
            if footprint is not None:
                yield before.name, footprint, capacity_transition(simulated, before, behind, self.curve.is_latency)


@dataclass(frozen=True)
class CardCurves:
    """All curves of a card."""

    card: Card
    fit: Fit
    curves: Sequence[CurveReplay]
    causes: Sequence[WhatIfReplay]
