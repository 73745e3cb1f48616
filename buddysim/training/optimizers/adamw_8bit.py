"""AdamW with moment estimates of 8 bits: bitsandbytes' ``AdamW8bit``, its paged form, and torchao's.

All have blocks of 256 (bitsandbytes since 0.45; 2048 before). The estimates of a paged optimizer that have 100,000
elements or more lie in managed memory: none of the allocator's, and here none of the GPU's.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import ClassVar

from buddysim.training.autograd.dtypes import DType, float32, uint8
from buddysim.training.autograd.layout import Shape
from buddysim.training.optimizers._quantized import SMALLEST, SMALLEST_PAGED, QuantizedAdam
from buddysim.training.optimizers.optimizer import StateTensor, UpdatedWeight

ORDER = 50
BLOCK = 256


class _EightBits(QuantizedAdam):
    VARIANTS: ClassVar[tuple[str, ...]] = ("bitsandbytes", "paged", "torchao")

    def state(self, shape: Shape, dtype: DType, variant: str) -> Sequence[StateTensor]:
        """Return the estimates; bitsandbytes has a scale for the rest of a tensor behind its last whole block too."""
        if variant == "torchao":
            return super().state(shape, dtype, variant)
        elements = prod(shape)
        names = ("state1", "state2")
        if elements < SMALLEST:
            return [StateTensor(name, shape, float32) for name in names]
        codes = [StateTensor(name, shape, uint8) for name in names]
        scales = [StateTensor(f"absmax{name[-1]}", (-(-elements // BLOCK),), float32, "zeros") for name in names]
        return scales if variant == "paged" and elements >= SMALLEST_PAGED else [*codes, *scales]

    def shared_state(self, variant: str) -> Sequence[StateTensor]:
        """Return bitsandbytes' tables of what codes mean."""
        if variant == "torchao":
            return ()
        return [StateTensor(name, (256,), float32, "_to_copy") for name in ("dynamic", "udynamic")]

    def kernel(self, one: UpdatedWeight, variant: str) -> str:
        if variant == "torchao":
            return super().kernel(one, variant)
        return "optimizer_update_32bit" if one.weight.numel() < SMALLEST else "optimizer_update_8bit_blockwise"


OPTIMIZER = _EightBits("adamw-8bit", "AdamW with moment estimates of 8 bits: 2.03 B for each weight", 8, BLOCK)
