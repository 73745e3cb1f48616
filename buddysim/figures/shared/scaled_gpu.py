"""A GPU scaled down to a small trace: eight memory channels, and SMs, L2 slices and link in proportion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from buddysim.machine.model import Machine

CHANNELS: Final = 8
#: The trace's footprint is at least so many times the L2.
FOOTPRINTS_OF_L2: Final = 4
_LINE_BYTES: Final = 128


@dataclass(frozen=True)
class ScaledGpu:
    """A machine of which a fraction is simulated; latencies stay.

    Parameters
    ----------
    sms : streaming multiprocessors
    l2_bytes : size of the L2, a quarter of the footprint or less
    metadata_bytes : size of the metadata cache
    link_bandwidth, link_write_bandwidth : of the scaled machine, bytes per second; 0: as the other direction
    fraction : of the whole machine
    """

    sms: int
    l2_bytes: int
    metadata_bytes: int
    link_bandwidth: float
    link_write_bandwidth: float
    fraction: float

    @classmethod
    def of(cls, machine: str, footprint: int) -> ScaledGpu:
        """Return a machine scaled down for a footprint in bytes."""
        whole = Machine.load(machine)
        fraction = CHANNELS / whole.dram.channels
        quantum = CHANNELS * whole.l2.ways * _LINE_BYTES
        most = min(footprint / FOOTPRINTS_OF_L2, int(whole.value("l2.size")) * fraction)
        return cls(
            round(whole.sm.count * fraction),
            int(most // quantum) * quantum,
            int(int(whole.value("metadata_cache.size")) * fraction),
            whole.bytes_per_s(whole.link.bandwidth) * fraction,
            whole.bytes_per_s(whole.link.write_bandwidth) * fraction,
            fraction,
        )

    def settings(self, link_gbs: float | None = None) -> dict[str, Any]:
        """Return the machine's changed keys.

        Parameters
        ----------
        link_gbs : bandwidth of the whole machine's link in each direction, GB/s; None: the machine's own
        """
        link, write = self.link_bandwidth, self.link_write_bandwidth
        if link_gbs is not None:
            link, write = link_gbs * 1e9 * self.fraction, 0.0
        return {
            "sm.count": self.sms,
            "l2.slices": CHANNELS,
            "l2.partitions": 1,
            "l2.size": f"{self.l2_bytes} B",
            "dram.channels": CHANNELS,
            "metadata_cache.slices": CHANNELS,
            "metadata_cache.size": f"{self.metadata_bytes} B",
            "link.bandwidth": f"{link / 1e9:.6g} GB/s",
            "link.write_bandwidth": f"{write / 1e9:.6g} GB/s",
        }
