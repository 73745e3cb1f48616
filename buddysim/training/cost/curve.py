"""Time of a matrix product relative to its time at the best rate of its class of layer.

Long, wide and deep products run at a constant fraction of the peak rate, the efficiency. Smaller products lose time in
three ways. Columns are computed in whole tiles. Rows and the inner extent count as longer by a constant (prologues of
loops). At the end, multiprocessors are idle for the time of a constant number of tiles. No term decreases with an
extent, so a smaller product never takes longer. Only the four basic operations and rounding up are used, so that
results are bit-identical on every machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from buddysim.machine.training import TrainingMachine
from buddysim.training.cost.work import WINOGRAD_CLASSES, MatmulWork

TILE = 64 * 64
"""Output elements of one tile, the unit of work that is distributed over multiprocessors."""

LANES = 128
"""Lanes of the reference multiprocessor; one with fewer or more lanes counts in proportion."""


def curve_name(pass_: str, group: str, winograd: bool) -> str:
    """Return the name of a pass's curve.

    CONVs with 3x3 windows have a separate curve if Winograd's products were timed.

    Parameters
    ----------
    group : class of the CONV
    winograd : whether the fastest algorithm for 3x3 windows is Winograd's
    """
    return f"{pass_}-3x3" if group in WINOGRAD_CLASSES and winograd else pass_


@dataclass(frozen=True)
class PeakRates:
    """Peak rates of a GPU: FLOP/s, bytes/s, and its number of multiprocessors of 128 lanes."""

    flops: float
    bytes_per_s: float
    multiprocessors: float

    @classmethod
    def of(cls, machine: TrainingMachine) -> PeakRates:
        return cls(
            float(machine.issued_flops),
            float(machine.dram_bytes_per_s),
            machine.issued_flops / (2.0 * LANES * machine.clock_hz),
        )


@dataclass(frozen=True)
class PassTimeModel:
    """Constants of one pass, the same for every GPU.

    Attributes
    ----------
    rows, inner : elements by which these extents of the product count as longer
    cols : columns of a tile: columns are computed in multiples of it
    tail : time that every multiprocessor is idle at the end, in whole tiles
    bandwidth : fraction of the peak bandwidth at which operands are moved
    launch_us : fixed time of a pass, in microseconds
    """

    rows: float
    cols: float
    inner: float
    tail: float
    bandwidth: float
    launch_us: float

    def compute_s(self, product: MatmulWork, peak: PeakRates) -> float:
        """Return the seconds that the product would take at an efficiency of one."""
        outputs = (product.rows + self.rows) * self.cols * math.ceil(product.cols / self.cols) * product.count
        idle = self.tail * peak.multiprocessors * TILE
        return 2.0 * (outputs + idle) * (product.inner + self.inner) / peak.flops

    def memory_s(self, moved: float, peak: PeakRates) -> float:
        """Return the seconds to move `moved` bytes of operands."""
        return moved / (peak.bytes_per_s * self.bandwidth)

    @property
    def launch_s(self) -> float:
        """Return the fixed time of a pass, in seconds."""
        return self.launch_us / 1e6

    def seconds(self, product: MatmulWork, moved: float, efficiency: float, peak: PeakRates) -> float:
        """Return the time of a pass: the launch, and the longer of computing and moving.

        Parameters
        ----------
        moved : bytes of the operands
        efficiency : fraction of the peak rate
        """
        return self.launch_s + max(self.compute_s(product, peak) / efficiency, self.memory_s(moved, peak))
