"""Curves beside their replays, card by card."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from buddysim.machine import Machine
from buddysim.validation.curve.causes import WhatIfReplay
from buddysim.validation.curve.curve_data import STREAM, STRIDES, Card, MeasuredCurve
from buddysim.validation.curve.fit import Fit
from buddysim.validation.curve.metrics import errors, knee, levels


@dataclass(frozen=True)
class CurveReplay:
    """A curve beside its replay.

    Attributes
    ----------
    curve : measured
    machine : what replayed it
    points : x, measured and simulated
    fitted : x of the points that the fit has used
    """

    curve: MeasuredCurve
    machine: Machine
    points: Sequence[tuple[float, float, float]]
    fitted: frozenset[float]

    @property
    def errors(self) -> list[float]:
        """Of each point."""
        return errors([ours for _, _, ours in self.points], [theirs for _, theirs, _ in self.points])

    @property
    def held_out(self) -> list[float]:
        """Errors of the points that the fit has not used."""
        return [error for (x, _, _), error in zip(self.points, self.errors, strict=True) if x not in self.fitted]

    def knees(self) -> Iterator[tuple[str, float, float | None]]:
        """The level behind which each knee of the measured curve lies, the knee measured and simulated, KiB."""
        if self.curve.benchmark.startswith(STREAM) or self.curve.benchmark == STRIDES:
            return
        theirs = [(x, y) for x, y, _ in self.points]
        ours = [(x, y) for x, _, y in self.points]
        for before, behind in pairwise(levels(self.machine)):
            found = knee(theirs, before, behind, self.curve.is_latency)
            if found is not None:
                yield before.name, found, knee(ours, before, behind, self.curve.is_latency)


@dataclass(frozen=True)
class CardCurves:
    """All curves of a card."""

    card: Card
    fit: Fit
    curves: Sequence[CurveReplay]
    causes: Sequence[WhatIfReplay]
