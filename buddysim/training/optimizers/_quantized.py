"""AdamW whose moment estimates are numbers of few bits, with a scale for each block of them.

An estimate is its codes, scales in single precision, and a table of what the codes mean. torchao has a table
for each tensor (``torchao/optim/subclass_8bit.py``, ``subclass_4bit.py``), bitsandbytes two for all of them
(``bitsandbytes/optim/optimizer.py``: `name2qmap`). Small weights keep estimates that aren't quantised: in the weight's
format (torchao), in single precision (bitsandbytes). Both update weight by weight. bitsandbytes' kernel needs no
temporaries; of torchao's, which torch.compile fuses into one kernel a weight, the same is assumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import ClassVar

from buddysim.training.autograd.dtypes import DType, float32, uint8
from buddysim.training.autograd.layout import Shape
from buddysim.training.optimizers._kernels import in_place
from buddysim.training.optimizers.optimizer import Optimizer, Scaling, StateTensor, UpdatedWeight

#: Weights of fewer elements keep estimates that aren't quantised.
SMALLEST = 4096
#: Elements from which on an estimate of a paged optimizer lies in managed memory (``get_state_buffer``).
SMALLEST_PAGED = 100_000
_ESTIMATES = ("exp_avg", "exp_avg_sq")


class QuantizedAdam(Optimizer):
    """AdamW with quantised moment estimates.

    Parameters
    ----------
    bits : of a code
    block : elements that share a scale
    variants : whose blocks, tables and kernels
    """

    VARIANTS: ClassVar[tuple[str, ...]] = ("torchao",)

    def __init__(self, name: str, summary: str, bits: int, block: int) -> None:
        super().__init__(name, summary)
        self.bits, self.block = bits, block

    def state(self, shape: Shape, dtype: DType, variant: str) -> Sequence[StateTensor]:
        elements = prod(shape)
        if elements < SMALLEST or elements % self.block:
            return [StateTensor(name, shape, dtype) for name in _ESTIMATES]
        codes = shape if self.bits == 8 else (elements * self.bits // 8,)
        return [
            state
            for name in _ESTIMATES
            for state in (
                StateTensor(f"{name}.codes", codes, uint8, "zeros"),
                StateTensor(f"{name}.scale", (elements // self.block,), float32, "zeros"),
                StateTensor(f"{name}.qmap", (1 << self.bits,), float32, "_to_copy"),
            )
        ]

    def undoes_scaling(self, variant: str) -> bool:
        return False

    def update(self, updated: Sequence[UpdatedWeight], variant: str, scaling: Scaling | None) -> None:
        for one in updated:
            changed = [state for name, state in one.state.items() if not name.endswith("qmap")]
            tables = [state for name, state in one.state.items() if name.endswith("qmap")]
            in_place(self.kernel(one, variant), [one.weight, *changed], [one.gradient, *tables])

    def kernel(self, one: UpdatedWeight, variant: str) -> str:
        """Return the name of the kernel that updates a weight."""
        return "single_param_adam"
