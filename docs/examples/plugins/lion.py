"""An optimizer of your own: Lion (Chen et al. 2023), as its authors' PyTorch code computes it."""

from __future__ import annotations

from collections.abc import Sequence

from buddysim.training.autograd.dtypes import DType
from buddysim.training.autograd.layout import Shape
from buddysim.training.autograd.tape import active_tape
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.optimizers.optimizer import Optimizer, Scaling, StateTensor, UpdatedWeight


class Lion(Optimizer):
    """The sign of an average of gradients: one tensor of state for each weight, in the weight's format."""

    VARIANTS = ("for-loop",)

    def state(self, shape: Shape, dtype: DType, variant: str) -> Sequence[StateTensor]:
        return (StateTensor("exp_avg", shape, dtype),)

    def update(self, updated: Sequence[UpdatedWeight], variant: str, scaling: Scaling | None) -> None:
        tape = active_tape()
        for one in updated:
            weight, gradient, average = one.weight, one.gradient, one.state["exp_avg"]
            tape.launch("mul_", (weight,), (weight,))
            first, second = computed("mul", average), computed("mul", gradient)
            update = computed("add", first, second)
            del first, second
            tape.launch("sign_", (update,), (update,))
            tape.launch("add_", (weight, update), (weight,))
            tape.launch("mul_", (average,), (average,))
            tape.launch("add_", (average, gradient), (average,))
            del update


def computed(name: str, *operands: Tensor) -> Tensor:
    """Record an element-wise kernel with a result of its own."""
    first, tape = operands[0], active_tape()
    result = tape.empty(first.shape, first.dtype, name, first.strides)
    tape.launch(name, operands, (result,))
    return result


OPTIMIZER = Lion("lion", "sign of averaged gradients: one estimate")
