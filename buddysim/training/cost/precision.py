"""Precisions of a training: the size of feature maps, and the rate of matrix products.

TF32 rounds the operands of FP32 products for tensor cores. FP16 and BF16 are mixed precision, as in frameworks'
automatic casting: feature maps and their gradients have 16 bits, weights and their gradients are single precision.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine

MATRIX_FRACTION = 0.85
"""Efficiency of products on tensor cores over that of the same products in FP32, each relative to its peak rate.

It is the median of DeepBench's FP16 sheets on V100 and T4, 0.85 on both (CONV, forward). Assumed: newer GPUs and TF32
have the same ratio.
"""


@dataclass(frozen=True)
class Precision:
    """Precision of a training.

    Attributes
    ----------
    element_bytes : bytes of an element of a feature map and of its gradient
    """

    name: str
    element_bytes: int

    def matrix_flops(self, machine: TrainingMachine) -> float:
        """Return the FLOP/s that efficiencies refer to: FP32's peak, or `MATRIX_FRACTION` of the tensor cores' peak.

        Raises
        ------
        BuddysimError
            if the machine file has no rate in this precision
        """
        if self.name == "fp32":
            return float(machine.issued_flops)
        rate: int | None = getattr(machine.training, self.name)
        if rate is None:
            offered = ", ".join(name for name in PRECISIONS if getattr(machine.training, name) is not None)
            raise BuddysimError(f"precision {self.name}: {machine.name} has no rate for it: expected one of {offered}")
        return rate * MATRIX_FRACTION


PRECISIONS: Mapping[str, Precision] = {
    name: Precision(name, element_bytes) for name, element_bytes in (("fp32", 4), ("tf32", 4), ("fp16", 2), ("bf16", 2))
}


def find_precision(name: str) -> Precision:
    """Return a precision by its name.

    Raises
    ------
    BuddysimError
        if the name is unknown; the message has the nearest name
    """
    if name not in PRECISIONS:
        raise BuddysimError(
            f"precision {shortened(name)}: expected one of {', '.join(PRECISIONS)}{hint(name, PRECISIONS)}"
        )
    return PRECISIONS[name]
