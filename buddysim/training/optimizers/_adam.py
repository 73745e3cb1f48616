"""Adam and AdamW, by the kernels of ``torch.optim.Adam`` 2.13 (``adam.py``)."""

from __future__ import annotations

from collections.abc import Sequence

from buddysim.training.autograd.dtypes import DType, float32
from buddysim.training.autograd.layout import Shape
from buddysim.training.autograd.tape import active_tape
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.optimizers._kernels import by_format, computed, in_place, state_of
from buddysim.training.optimizers.optimizer import Optimizer, Scaling, StateTensor, UpdatedWeight

_MEAN, _SQUARE, _STEP = "exp_avg", "exp_avg_sq", "step"


class AdamRule(Optimizer):
    """Two moment estimates for each weight, in its format.

    Parameters
    ----------
    decoupled : whether weights decay by themselves (AdamW); Adam's default is no decay
    """

    def __init__(self, name: str, summary: str, decoupled: bool) -> None:
        super().__init__(name, summary)
        self.decoupled = decoupled

    def state(self, shape: Shape, dtype: DType, variant: str) -> Sequence[StateTensor]:
        """The number of a weight's updates is on the GPU for the fused kernel alone."""
        estimates = (StateTensor(_MEAN, shape, dtype), StateTensor(_SQUARE, shape, dtype))
        return (StateTensor(_STEP, (), float32, "zeros"), *estimates) if variant == "fused" else estimates

    def update(self, updated: Sequence[UpdatedWeight], variant: str, scaling: Scaling | None) -> None:
        if variant == "for-loop":
            self._update_each(updated)
            return
        for group in by_format(updated):
            if variant == "fused":
                self._update_fused(group, scaling)
            else:
                self._update_together(group)

    def _update_together(self, group: Sequence[UpdatedWeight]) -> None:
        """``_multi_tensor_adam``: the roots of the second estimates of all weights live at once."""
        weights, gradients = [one.weight for one in group], [one.gradient for one in group]
        means, squares = state_of(group, _MEAN), state_of(group, _SQUARE)
        if self.decoupled:
            in_place("_foreach_mul_", weights)
        in_place("_foreach_lerp_", means, gradients)
        in_place("_foreach_mul_", squares)
        in_place("_foreach_addcmul_", squares, gradients)
        tape = active_tape()
        roots = [tape.empty(one.shape, one.dtype, "_foreach_sqrt", one.strides) for one in squares]
        tape.launch("_foreach_sqrt", squares, roots)
        in_place("_foreach_div_", roots)
        in_place("_foreach_add_", roots)
        in_place("_foreach_addcdiv_", weights, means, roots)

    def _update_fused(self, group: Sequence[UpdatedWeight], scaling: Scaling | None) -> None:
        """``_fused_adam``: one kernel, no temporaries."""
        weights, gradients = [one.weight for one in group], [one.gradient for one in group]
        state = [state_of(group, name) for name in (_MEAN, _SQUARE)]
        steps = state_of(group, _STEP)
        in_place("_foreach_add_", steps)
        kernel = "_fused_adamw_" if self.decoupled else "_fused_adam_"
        in_place(kernel, [*weights, *state[0], *state[1]], gradients, steps, scaling or ())
        if scaling is not None:
            in_place("_foreach_sub_", steps, (scaling.found_infinite,))

    def _update_each(self, updated: Sequence[UpdatedWeight]) -> None:
        """``_single_tensor_adam``: a weight's denominator lives until the next one's is there."""
        denominator: Tensor | None = None
        for one in updated:
            mean, square = one.state[_MEAN], one.state[_SQUARE]
            if self.decoupled:
                in_place("mul_", (one.weight,))
            in_place("lerp_", (mean,), (one.gradient,))
            in_place("mul_", (square,))
            in_place("addcmul_", (square,), (one.gradient,))
            root = computed("sqrt", square)
            quotient = computed("div", root)
            del root
            in_place("add_", (quotient,))
            denominator = quotient
            del quotient
            in_place("addcdiv_", (one.weight,), (mean, denominator))
        del denominator
