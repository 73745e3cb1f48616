"""How far a matrix product stays below the rate that its class of layer reaches at best.

Long, wide and deep products run at a constant share of the peak rate, the efficiency. Each extent that is short costs
as if it were longer by a constant (tiles that overhang, prologues of loops), and too few tiles leave multiprocessors
idle at the end. Only the four basic operations are used, so that every machine computes the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass

from buddysim.machine.training import TrainingMachine
from buddysim.training.cost.work import WINOGRAD_CLASSES, Product

TILE = 64 * 64
"""Output elements of one tile, the unit that work is spread over multiprocessors in."""

LANES = 128
"""Lanes of the multiprocessor that tiles are counted against; others count by their share of it."""


def curve_name(pass_: str, group: str, winograd: bool) -> str:
    """The curve of a pass: 3x3 windows have their own where Winograd's products are what was timed."""
    return f"{pass_}-3x3" if group in WINOGRAD_CLASSES and winograd else pass_


@dataclass(frozen=True)
class Peak:
    """What the time of a product is relative to: operations and bytes per second, multiprocessors of 128 lanes."""

    flops: float
    bytes_per_s: float
    multiprocessors: float

    @classmethod
    def of(cls, machine: TrainingMachine) -> Peak:
        return cls(
            float(machine.fp32_flops),
            float(machine.dram_bytes_per_s),
            machine.fp32_flops / (2.0 * LANES * machine.clock_hz),
        )


@dataclass(frozen=True)
class Curve:
    """The constants of one pass, the same for every GPU.

    Attributes
    ----------
    rows, cols, inner : by how much each extent of the product counts longer than it is, in elements
    tail : tiles' worth of time that a multiprocessor idles at the end
    bandwidth : share of the peak bandwidth that operands are moved with
    launch_us : fixed time of a pass, in microseconds
    """

    rows: float
    cols: float
    inner: float
    tail: float
    bandwidth: float
    launch_us: float

    def compute_s(self, product: Product, peak: Peak) -> float:
        """Seconds that the product would take at an efficiency of one."""
        tiles = product.rows * product.cols * product.count / TILE
        stretched = 1.0 + self.rows / product.rows + self.tail * peak.multiprocessors / tiles
        stretched *= (1.0 + self.cols / product.cols) * (1.0 + self.inner / product.inner)
        return product.flops / peak.flops * stretched

    def memory_s(self, moved: float, peak: Peak) -> float:
        """Seconds to move the operands."""
        return moved / (peak.bytes_per_s * self.bandwidth)

    @property
    def launch_s(self) -> float:
        """Fixed time of a pass, in seconds."""
        return self.launch_us / 1e6

    def seconds(self, product: Product, moved: float, efficiency: float, peak: Peak) -> float:
        """Time of a pass: the longer of computing and moving, and the launch."""
        return self.launch_s + max(self.compute_s(product, peak) / efficiency, self.memory_s(moved, peak))
