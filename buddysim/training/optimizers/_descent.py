"""Gradient descent with and without momentum, by the kernels of ``torch.optim.SGD`` 2.13 (``sgd.py``)."""

from __future__ import annotations

from collections.abc import Sequence

from buddysim.training.autograd.dtypes import DType
from buddysim.training.autograd.layout import Shape
from buddysim.training.optimizers._kernels import by_format, in_place, state_of
from buddysim.training.optimizers.optimizer import Optimizer, Scaling, StateTensor, UpdatedWeight

_BUFFER = "momentum_buffer"


class GradientDescent(Optimizer):
    """Without weight decay, dampening or Nesterov's step.

    Parameters
    ----------
    momentum : whether gradients are averaged
    """

    def __init__(self, name: str, summary: str, momentum: bool) -> None:
        super().__init__(name, summary)
        self.momentum = momentum

    def state(self, shape: Shape, dtype: DType, variant: str) -> Sequence[StateTensor]:
        """The first update copies the gradients; the fused kernel writes into what is empty."""
        if not self.momentum:
            return ()
        return (StateTensor(_BUFFER, shape, dtype, "empty_like" if variant == "fused" else "clone"),)

    def update(self, updated: Sequence[UpdatedWeight], variant: str, scaling: Scaling | None) -> None:
        if variant == "for-loop":
            for one in updated:
                self._update_one(one)
            return
        for group in by_format(updated):
            weights, gradients = [one.weight for one in group], [one.gradient for one in group]
            buffers = state_of(group, _BUFFER) if self.momentum else []
            if variant == "fused":
                in_place("_fused_sgd_", [*weights, *buffers], gradients, scaling or ())
                continue
            if self.momentum and not group[0].fresh:
                in_place("_foreach_mul_", buffers)
                in_place("_foreach_add_", buffers, gradients)
            in_place("_foreach_add_", weights, buffers or gradients)

    def _update_one(self, one: UpdatedWeight) -> None:
        step = one.gradient
        if self.momentum:
            step = one.state[_BUFFER]
            if not one.fresh:
                in_place("mul_", (step,))
                in_place("add_", (step,), (one.gradient,))
        in_place("add_", (one.weight,), (step,))
