"""Time of kernels that device memory bounds: bytes at a fraction of the peak, which small kernels don't reach.

A kernel takes its floor (launch, first load, last store) or its bytes, joined by a norm: long ones hide the floor,
short ones their bytes. So the fraction of the peak rises with the size. `KernelKind` says how a kernel reads. An
element-wise kernel whose bytes fit in the L2 cache finds there what the kernel before it has written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from buddysim.training.cost.operators.figures import GpuFigures
from buddysim.training.networks.recorded.work import KernelKind

CACHED: KernelKind = "elementwise"
"""The kind of kernel whose operands were timed in the L2 cache."""


@dataclass(frozen=True)
class MemoryConstants:
    """Constants of kernels that memory bounds, on one GPU.

    Attributes
    ----------
    floor_us : of a kernel without work, in microseconds
    bandwidth : fraction of the peak bandwidth of long kernels, by kind
    sharpness : exponent of the norm of floor and bytes
    cached : rate at which element-wise kernels move bytes in the L2 cache, over that of device memory
    """

    floor_us: float
    bandwidth: Mapping[str, float]
    sharpness: float
    cached: float = 1.0


def memory_seconds(constants: MemoryConstants, gpu: GpuFigures, kind: KernelKind, moved: float) -> float:
    """Return the seconds of a kernel that moves `moved` bytes."""
    power = constants.sharpness
    rate = gpu.dram_bytes_per_s * constants.bandwidth[kind]
    if kind == CACHED:
        rate *= 1 + (constants.cached - 1) * min(1.0, max(0.0, 1.5 - moved / gpu.l2_bytes))
    spent = moved / rate
    return float(((constants.floor_us / 1e6) ** power + spent**power) ** (1 / power))
