"""Clocks and bandwidths in the engine's units: a core cycle, time of a sector, cost of bytes at a port."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from buddysim.compress import SECTOR_BYTES
from buddysim.machine.units import Bandwidth

if TYPE_CHECKING:
    from buddysim.machine import Machine

COST_PER_PS = 1024  # port.FINE_BITS


def core_cycle_ps(machine: Machine) -> int:
    """Return the time of a core cycle, at least 1 ps."""
    return max(1, int(10**12 / Fraction(machine.clock.core.hz) + Fraction(1, 2)))


def port_cost(size: int, bytes_per_s: int) -> int:
    """Return the port time of `size` bytes, rounded up, so that no port exceeds its bandwidth."""
    return -(-size * 10**12 * COST_PER_PS // bytes_per_s)


def sector_ps(machine: Machine, bandwidth: Bandwidth) -> int:
    """Return the time of one 32 B sector in whole picoseconds, rounded up."""
    return -(-SECTOR_BYTES * 10**12 // machine.bytes_per_s(bandwidth))
