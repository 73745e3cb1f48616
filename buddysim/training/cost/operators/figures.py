"""What the times of operators need to know about a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from buddysim.machine.training import TrainingMachine

ELEMENT_BYTES: Mapping[str, int] = {"fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2}
"""Bytes of an element of a product's operands, by the number format of the product."""


POWER_EXPONENT = 0.75
"""Exponent of the rate over the power: 1 where the voltage can't fall with the clock, 1/3 where it falls in proportion.
Chosen on two cards of 70 W, L4 and T4 (docs/validation/operators.md)."""

SMALL_L2 = 4 << 20
"""Bytes of the L2 cache where a machine file names none: those of GPUs before 2020."""


@dataclass(frozen=True)
class GpuFigures:
    """Peak figures of a GPU, from its machine file.

    Attributes
    ----------
    flops : peak FLOP/s of matrix products, by number format; only formats that the GPU has
    sustained : part of the peak rates that the power limit leaves to a GPU that computes all the time
    """

    name: str
    sms: int
    clock_hz: float
    dram_bytes_per_s: float
    l2_bytes: float
    flops: Mapping[str, float]
    sustained: float = 1.0

    @classmethod
    def of(cls, machine: TrainingMachine) -> GpuFigures:
        """Return the figures of a machine. A format without a rate of its own is computed in fp32."""
        single = float(machine.fp32_flops)
        own = {name: getattr(machine.training, name) for name in ELEMENT_BYTES}
        flops = {name: float(rate or single) for name, rate in own.items()}
        cache = float(machine.training.l2_cache or SMALL_L2)
        moved = float(machine.dram_bytes_per_s)
        return cls(machine.name, machine.sms, float(machine.clock_hz), moved, cache, flops, _sustained(machine))

    def rate_over(self, machine: str) -> float:
        """Return the part of its peak rates that this GPU sustains over that of another one, by its name."""
        return 1.0 if machine == self.name else self.sustained / _sustained(TrainingMachine.load(machine))


def _sustained(machine: TrainingMachine) -> float:
    limit, full = machine.training.power_limit_w, machine.training.full_rate_power_w
    if limit is None or full is None:
        return 1.0
    return float(min(1.0, limit / full) ** POWER_EXPONENT)
