"""The compressing DMA engine (Rhu et al., HPCA 2018, Sec. V): its rates, its buffer, its area, and the time of a copy.

Compressors sit in the memory controllers and the DMA engine has a buffer, so the engine can be short of either end:
the link takes the compressed bytes, device memory gives the uncompressed ones. The paper's COMP_BW stands for both the
demand and the cap; here a copy takes the longer of compressed bytes / link and raw bytes / cap.

Published, for a Titan X (Maxwell) on PCIe gen3: 200 GB/s of read bandwidth at most, of the 236 GB/s that
computing leaves over; 48 GB/s with the bandwidth-aware policy; a buffer of 70 KB; 0.31 + 0.21 mm2 in 28 nm; 1.5 mm2 for
PCIe gen5. Other links and machines are extrapolated here by the rules that each function states.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from buddysim.machine.units import PS_PER_S

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine

#: Bytes that a compressor of one memory controller takes each cycle: the data path, and a DRAM burst (Sec. V-B).
BYTES_PER_CYCLE = 32
#: Cycles until a 128 B line has been compressed: four sectors through three stages (Sec. V-B).
COMPRESS_CYCLES = 6
#: Cycles that decompressing adds to the arrival of a line (Sec. V-B).
DECOMPRESS_CYCLES = 2
#: From a read request to device memory until the data are at the engine (Sec. V-C).
MEMORY_LATENCY_PS = 350_000
#: The link that the published figures are for: PCIe gen3 (Sec. VI), bytes/s.
PUBLISHED_LINK = 16_000_000_000
#: Read bandwidth provisioned for that link (Sec. V-C), bytes/s.
PUBLISHED_CAP = 200_000_000_000
#: Read bandwidth that the bandwidth-aware policy stays within, three times that link (Sec. V-D), bytes/s.
BANDWIDTH_AWARE_CAP = 48_000_000_000
#: Device memory bandwidth that computing was measured to need at most (Sec. VI), bytes/s, and the FLOP/s of the
#: Titan X that it was measured on.
COMPUTE_BANDWIDTH = 100_000_000_000
COMPUTE_FLOPS = 7_000_000_000_000
#: Units in the paper's chip, one per memory controller, and their area and that of the buffer in 28 nm (Sec. V-C), mm2.
PUBLISHED_UNITS = 6
PUBLISHED_UNITS_MM2 = 0.31
PUBLISHED_BUFFER_MM2 = 0.21


@dataclass(frozen=True)
class CdmaEngine:
    """A cDMA engine made for one link.

    Attributes
    ----------
    link_bytes_per_s : rate of the link in one direction
    read_bytes_per_s : uncompressed bytes per second that it may read from device memory
    buffer_bytes : read bandwidth x latency of device memory: the uncompressed bytes in flight
    buffer_mm2 : the published buffer's area, grown with its bytes
    units_mm2 : of six units, one for each memory controller, as published
    units_needed : units of 32 B per cycle that the read bandwidth needs at `clock_hz`
    scaled_units_mm2 : area of as many units as are needed, where they are more than six
    clock_hz : of the units
    """

    link_bytes_per_s: int
    read_bytes_per_s: int
    buffer_bytes: int
    buffer_mm2: float
    units_mm2: float
    units_needed: int
    scaled_units_mm2: float
    clock_hz: int

    @property
    def area_mm2(self) -> float:
        """Six units and the buffer: how the paper words the growth for faster links (Sec. VIII); 0.52 for gen3."""
        return self.units_mm2 + self.buffer_mm2

    @property
    def scaled_area_mm2(self) -> float:
        """Units and buffer grown with the link: an upper bound."""
        return self.scaled_units_mm2 + self.buffer_mm2


def engine(link_bytes_per_s: int, clock_hz: int = 1_075_000_000) -> CdmaEngine:
    """The engine that a link needs: the published one up to 16 GB/s; for faster links, all in proportion to it.

    Parameters
    ----------
    link_bytes_per_s : the link's peak in one direction (16 GB/s for PCIe gen3)
    clock_hz : of the units; by default the boost clock of the paper's Titan X, at which six units take 206 GB/s (at
        its base clock of 1 GHz 192 GB/s, less than the 200 provisioned)

    Notes
    -----
    For PCIe gen5 (64 GB/s) this gives a buffer of 280 KB (0.84 mm2) and 1.15 mm2 with six units, 2.08 mm2 with four
    times as many; the 1.5 mm2 of the paper (Sec. VIII) lie between: 12 or 13 units have 1.46 and 1.51 mm2.
    """
    read = PUBLISHED_CAP * max(link_bytes_per_s, PUBLISHED_LINK) // PUBLISHED_LINK
    buffer_bytes = _over(read * MEMORY_LATENCY_PS, PS_PER_S)
    published_buffer = PUBLISHED_CAP * MEMORY_LATENCY_PS // PS_PER_S
    needed = _over(read, BYTES_PER_CYCLE * clock_hz)
    unit_mm2 = PUBLISHED_UNITS_MM2 / PUBLISHED_UNITS
    return CdmaEngine(
        link_bytes_per_s=link_bytes_per_s,
        read_bytes_per_s=read,
        buffer_bytes=buffer_bytes,
        buffer_mm2=PUBLISHED_BUFFER_MM2 * buffer_bytes / published_buffer,
        units_mm2=PUBLISHED_UNITS_MM2,
        units_needed=needed,
        scaled_units_mm2=unit_mm2 * max(needed, PUBLISHED_UNITS),
        clock_hz=clock_hz,
    )


def left_over_bytes_per_s(dram_bytes_per_s: int, fp32_flops: int) -> int:
    """Device memory bandwidth that computing leaves for copies: 336 - 100 = 236 GB/s on the paper's Titan X.

    For other machines the 100 GB/s grow with the FLOP/s: the same work in less time moves the same bytes (assumed; the
    paper keeps 236 GB/s for its Titan Xp too, and no cap of its figures depends on that).
    """
    return max(dram_bytes_per_s - COMPUTE_BANDWIDTH * fp32_flops // COMPUTE_FLOPS, 0)


def read_cap(link_bytes_per_s: int, left_over: int, bandwidth_aware: bool = False) -> int:
    """Bytes per second that the engine may read of device memory (and write to it, for prefetches).

    For links up to PCIe gen3's 16 GB/s, 200 GB/s, or 48 GB/s if `bandwidth_aware`. For faster links 12.5 or 3 times
    their rate, at most the bandwidth that computing leaves, at least the link's own rate.
    """
    published = BANDWIDTH_AWARE_CAP if bandwidth_aware else PUBLISHED_CAP
    provisioned = published * max(link_bytes_per_s, PUBLISHED_LINK) // PUBLISHED_LINK
    return max(min(provisioned, left_over), link_bytes_per_s)


def copy_ps(raw_bytes: int, moved_bytes: int, link_bytes_per_s: int, cap_bytes_per_s: int) -> int:
    """Picoseconds of a copy: the longer of its compressed bytes over the link, its raw bytes in device memory.

    The engine's own latencies are not in it: see `pipeline_ps`.
    """
    on_link = _over(moved_bytes * PS_PER_S, link_bytes_per_s)
    in_memory = _over(raw_bytes * PS_PER_S, cap_bytes_per_s)
    return max(on_link, in_memory)


def pipeline_ps(clock_hz: int = 1_075_000_000, decompress: bool = False) -> int:
    """Picoseconds that the engine's pipeline adds to a copy, once: windows follow each other at 32 B per cycle.

    6 cycles (5.6 ns) out, 2 (1.9 ns) back. AlexNet's smallest feature map that is copied has 169 KiB for each sample,
    which take 865 ns at the cap of 200 GB/s, however small they get: at most 0.7 % of it with one sample, 0.003 % with
    256. It is left out of `copy_ps`.
    """
    return _over((DECOMPRESS_CYCLES if decompress else COMPRESS_CYCLES) * PS_PER_S, clock_hz)


def report(machine: TrainingMachine) -> list[dict[str, float | str]]:
    """The engine that each link of a machine needs, and the read rate of copies over it; one row per link.

    ``link_gb_per_s``; ``provisioned_gb_per_s`` (for the engine), ``cap_gb_per_s`` and ``bandwidth_aware_gb_per_s``
    (of copies on this machine); ``most_ratio``: the ratio from which on the cap bounds a copy;
    ``buffer_kb``; ``area_mm2`` with six units; ``scaled_area_mm2`` with as many as are needed; ``units_needed``. GB and
    kB are 10^9 and 10^3 bytes.
    """
    left_over = left_over_bytes_per_s(machine.dram_bytes_per_s, machine.training.fp32)
    rows: list[dict[str, float | str]] = []
    for name, link in machine.links.items():
        rate = max(link.offload_bytes_per_s, link.prefetch_bytes_per_s)
        needed = engine(rate)
        cap = read_cap(rate, left_over)
        rows.append(
            {
                "link": name,
                "link_gb_per_s": rate / 1e9,
                "provisioned_gb_per_s": needed.read_bytes_per_s / 1e9,
                "cap_gb_per_s": cap / 1e9,
                "bandwidth_aware_gb_per_s": read_cap(rate, left_over, bandwidth_aware=True) / 1e9,
                "most_ratio": cap / rate,
                "buffer_kb": needed.buffer_bytes / 1e3,
                "area_mm2": needed.area_mm2,
                "scaled_area_mm2": needed.scaled_area_mm2,
                "units_needed": needed.units_needed,
            }
        )
    return rows


def _over(a: int, b: int) -> int:
    """a / b, rounded up."""
    return -(-a // b)
