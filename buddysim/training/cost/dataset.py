"""Timings of one GPU with one library version, the input of a fit."""

from __future__ import annotations

from dataclasses import dataclass

from buddysim.training.cost.calibration import version_of
from buddysim.training.cost.curve import PeakRates
from buddysim.training.cost.timings import MeasuredPass
from buddysim.training.cost.work import PASSES, MatmulWork, Pass


@dataclass(frozen=True)
class PassTiming:
    """One timing of one pass on one GPU, the input of a fit.

    Attributes
    ----------
    group : timings of one group and GPU have one efficiency
    moved : bytes of the operands
    """

    machine: str
    peak: PeakRates
    group: str
    product: MatmulWork
    moved: float
    seconds: float


@dataclass(frozen=True)
class Dataset:
    """Timings of one GPU with one library version."""

    machine: str
    library: str
    peak: PeakRates
    timings: tuple[MeasuredPass, ...]

    @property
    def winograd(self) -> bool:
        """Return whether the fastest algorithm for 3x3 windows is Winograd's."""
        version = version_of(self.library)
        return version is None or version >= 5

    def of_pass(self, pass_: str, kind: str = "conv") -> list[MeasuredPass]:
        """Return the timings of one pass of one kind of layer."""
        return [timing for timing in self.timings if timing.kind == kind and timing.pass_ == pass_]

    def measured(self, pass_: Pass, kind: str = "conv") -> list[PassTiming]:
        """Return the timings that a curve is fitted to."""
        return [self._measured(timing, pass_) for timing in self.of_pass(pass_, kind)]

    def _measured(self, timing: MeasuredPass, pass_: Pass) -> PassTiming:
        product = self.product(timing, pass_)
        moved = float(timing.work.bytes) if timing.kind == "conv" else product.bytes
        return PassTiming(self.machine, self.peak, timing.group, product, moved, timing.ms / 1e3)

    def product(self, timing: MeasuredPass, pass_: Pass) -> MatmulWork:
        """Return the matrix product of a CONV's or an FC's pass, as the fastest algorithm computes it."""
        if timing.kind != "conv":
            return timing.product.of_pass(pass_)
        return timing.work.tiled_product(pass_) if self.winograd else timing.work.product(pass_)


def passes_of(timing: MeasuredPass) -> tuple[Pass, ...]:
    """Return the passes that a timing covers; ``"backward"`` covers both backward passes."""
    return tuple(
        pass_ for pass_ in PASSES if timing.pass_ == pass_ or (timing.pass_ == "backward" and pass_ != "forward")
    )
