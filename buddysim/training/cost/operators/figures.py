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
    power_limit_w, full_rate_power_w : its power limit, and the power of its peak rates, in watts; None: not known
    """

    name: str
    sms: int
    clock_hz: float
    dram_bytes_per_s: float
    l2_bytes: float
    flops: Mapping[str, float]
    sustained: float = 1.0
    power_limit_w: float | None = None
    full_rate_power_w: float | None = None

    @classmethod
    def of(cls, machine: TrainingMachine) -> GpuFigures:
        """Return the figures of a machine. A format without a rate of its own is computed in fp32."""
        single = float(machine.training.fp32)
        own = {name: getattr(machine.training, name) for name in ELEMENT_BYTES}
        flops = {name: float(rate or single) for name, rate in own.items()}
        cache = float(machine.training.l2_cache or SMALL_L2)
        moved = float(machine.dram_bytes_per_s)
        limit, full = machine.training.power_limit_w, machine.training.full_rate_power_w
        return cls(
            machine.name,
            machine.training.sms,
            float(machine.clock_hz),
            moved,
            cache,
            flops,
            _sustained(machine),
            limit,
            full,
        )

    def rate_over(self, machine: str) -> float:
        """Return the part of its peak rates that this GPU sustains over that of another one, by its name."""
        return 1.0 if machine == self.name else self.sustained / _sustained(TrainingMachine.load(machine))

    def throttles_as(self, machine: str, number_format: str) -> bool:
        """Return whether sustained products slow this GPU as they slow another one, by its name.

        Tensor cores throttle a GPU whose power limit is below what their peak rate needs, at the other GPU's power for
        each FLOP/s. GeForce cards sum in FP32 at half the rate of their chip, with the power for all of it. The lanes
        of products without tensor cores run at their full rate on every card.
        """
        other = GpuFigures.of(TrainingMachine.load(machine))
        if (
            number_format == "fp32"
            or self.name == machine
            or self.power_limit_w is None
            or other.full_rate_power_w is None
        ):
            return True
        rate = self.flops[number_format] / other.flops[number_format]
        return self.power_limit_w < other.full_rate_power_w * rate


def _sustained(machine: TrainingMachine) -> float:
    limit, full = machine.training.power_limit_w, machine.training.full_rate_power_w
    if limit is None or full is None:
        return 1.0
    return float(min(1.0, limit / full) ** POWER_EXPONENT)
