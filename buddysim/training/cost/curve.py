"""How far a matrix product stays below the rate that its class of layer reaches at best.

Long, wide and deep products run at a constant fraction of the peak rate, the efficiency. Columns are computed in whole
tiles, rows and the inner extent cost as if they were longer by a constant (prologues of loops), and at the end
multiprocessors idle for the time of some whole tiles, however many there were before. Every term grows with every
extent or doesn't depend on it, so that a smaller product never takes longer. Only the four basic operations and
rounding up are used: every machine computes the same bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from buddysim.machine.training import TrainingMachine
from buddysim.training.cost.work import WINOGRAD_CLASSES, MatmulWork

TILE = 64 * 64
"""Output elements of one tile, the unit that work is spread over multiprocessors in."""

LANES = 128
"""Lanes of the multiprocessor that tiles are counted against; others count by their fraction of it."""


def curve_name(pass_: str, group: str, winograd: bool) -> str:
    """The curve of a pass: 3x3 windows have their own where Winograd's products are what was timed."""
    return f"{pass_}-3x3" if group in WINOGRAD_CLASSES and winograd else pass_


@dataclass(frozen=True)
class PeakRates:
    """Peak rates of a GPU: operations and bytes per second, multiprocessors of 128 lanes."""

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
    """The constants of one pass, the same for every GPU.

    Attributes
    ----------
    rows, inner : by how much these extents of the product count longer than they are, in elements
    cols : columns of a tile: columns are computed in multiples of it
    tail : whole tiles' worth of time that every multiprocessor idles at the end
    bandwidth : fraction of the peak bandwidth that operands are moved with
    launch_us : fixed time of a pass, in microseconds
    """

    rows: float
    cols: float
    inner: float
    tail: float
    bandwidth: float
    launch_us: float

    def compute_s(self, product: MatmulWork, peak: PeakRates) -> float:
        """Seconds that the product would take at an efficiency of one."""
        outputs = (product.rows + self.rows) * self.cols * math.ceil(product.cols / self.cols) * product.count
        idle = self.tail * peak.multiprocessors * TILE
        return 2.0 * (outputs + idle) * (product.inner + self.inner) / peak.flops

    def memory_s(self, moved: float, peak: PeakRates) -> float:
        """Seconds to move the operands."""
        return moved / (peak.bytes_per_s * self.bandwidth)

    @property
    def launch_s(self) -> float:
        """Fixed time of a pass, in seconds."""
        return self.launch_us / 1e6

    def seconds(self, product: MatmulWork, moved: float, efficiency: float, peak: PeakRates) -> float:
        """Time of a pass: the longer of computing and moving, and the launch."""
        return self.launch_s + max(self.compute_s(product, peak) / efficiency, self.memory_s(moved, peak))
