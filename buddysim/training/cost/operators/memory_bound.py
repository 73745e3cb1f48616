"""Time of kernels that device memory bounds: bytes at a fraction of the peak, which small kernels don't reach.

A kernel takes its floor (launch, first load, last store) or its bytes, joined by a norm: long ones hide the floor,
short ones their bytes. So the fraction of the peak rises with the size. `KernelKind` says how a kernel reads. An
element-wise kernel whose bytes fit in the L2 cache finds there what the kernel before it has written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, get_args

from pydantic import AfterValidator

from buddysim.training.cost.operators.constant_values import STRICT, Amount, Rate, Sharpness
from buddysim.training.cost.operators.figures import GpuFigures
from buddysim.training.networks.recorded.work import KernelKind

CACHED: KernelKind = "elementwise"
"""The kind of kernel whose operands were timed in the L2 cache."""


def _of_every_kind(bandwidth: Mapping[str, float]) -> Mapping[str, float]:
    if bandwidth.keys() != set(get_args(KernelKind)):
        raise ValueError(f"a value for each of {', '.join(get_args(KernelKind))}")
    return bandwidth


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

    __pydantic_config__ = STRICT

    floor_us: Amount
    bandwidth: Annotated[Mapping[str, Rate], AfterValidator(_of_every_kind)]
    sharpness: Sharpness
    cached: Rate = 1.0


def memory_seconds(constants: MemoryConstants, gpu: GpuFigures, kind: KernelKind, moved: float) -> float:
    """Return the seconds of a kernel that moves `moved` bytes."""
    power = constants.sharpness
    rate = gpu.dram_bytes_per_s * constants.bandwidth[kind]
    if kind == CACHED:
        rate *= 1 + (constants.cached - 1) * min(1.0, max(0.0, 1.5 - moved / gpu.l2_bytes))
    spent = moved / rate
    return float(((constants.floor_us / 1e6) ** power + spent**power) ** (1 / power))
