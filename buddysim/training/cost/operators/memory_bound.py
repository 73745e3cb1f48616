"""Time of kernels that device memory bounds: bytes at a fraction of the peak, which small kernels don't reach.

A kernel takes its floor (launch, first load, last store) or its bytes, joined by a norm: long ones hide the floor,
short ones their bytes. So the fraction of the peak rises with the size. `KernelKind` says how a kernel reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from buddysim.training.cost.operators.figures import GpuFigures
from buddysim.training.networks.recorded.work import KernelKind


@dataclass(frozen=True)
class MemoryConstants:
    """Constants of kernels that memory bounds, on one GPU.

    Attributes
    ----------
    floor_us : of a kernel without work, in microseconds
    bandwidth : fraction of the peak bandwidth of long kernels, by kind
    sharpness : exponent of the norm of floor and bytes
    """

    floor_us: float
    bandwidth: Mapping[str, float]
    sharpness: float


def memory_seconds(constants: MemoryConstants, gpu: GpuFigures, kind: KernelKind, moved: float) -> float:
    """Return the seconds of a kernel that moves `moved` bytes."""
    power = constants.sharpness
    spent = moved / (gpu.dram_bytes_per_s * constants.bandwidth[kind])
    return float(((constants.floor_us / 1e6) ** power + spent**power) ** (1 / power))
