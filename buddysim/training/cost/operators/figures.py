"""What the times of operators need to know about a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from buddysim.machine.training import TrainingMachine

ELEMENT_BYTES: Mapping[str, int] = {"fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2}
"""Bytes of an element of a product's operands, by the number format of the product."""


SMALL_L2 = 4 << 20
"""Bytes of the L2 cache where a machine file names none: those of GPUs before 2020."""


@dataclass(frozen=True)
class GpuFigures:
    """Peak figures of a GPU, from its machine file.

    Attributes
    ----------
    flops : peak FLOP/s of matrix products, by number format; only formats that the GPU has
    """

    name: str
    sms: int
    clock_hz: float
    dram_bytes_per_s: float
    l2_bytes: float
    flops: Mapping[str, float]

    @classmethod
    def of(cls, machine: TrainingMachine) -> GpuFigures:
        """Return the figures of a machine. A format without a rate of its own is computed in fp32."""
        single = float(machine.fp32_flops)
        own = {name: getattr(machine.training, name) for name in ELEMENT_BYTES}
        flops = {name: float(rate or single) for name, rate in own.items()}
        cache = float(machine.training.l2_cache or SMALL_L2)
        return cls(machine.name, machine.sms, float(machine.clock_hz), float(machine.dram_bytes_per_s), cache, flops)
