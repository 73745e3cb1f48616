"""An optimizer on a tape: it makes the state of its weights, and updates those that have gradients."""

from __future__ import annotations

from collections.abc import Sequence

from buddysim.training.autograd.module import Parameter
from buddysim.training.autograd.tape import active_tape
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.optimizers.optimizer import Optimizer, Scaling, StateTensor, UpdatedWeight


class TracedOptimizer:
    """The optimizer of some weights.

    Parameters
    ----------
    optimizer : None: weights aren't updated
    variant : a name of its ``VARIANTS``
    parameters : what is updated

    Attributes
    ----------
    scaling : what a gradient scaler leaves to the kernels of the next update
    """

    def __init__(self, optimizer: Optimizer | None, variant: str, parameters: Sequence[Parameter]) -> None:
        self.optimizer, self.variant, self.parameters = optimizer, variant, list(parameters)
        self.scaling: Scaling | None = None
        self._state: dict[int, dict[str, Tensor]] = {}
        self._shared: dict[str, Tensor] = {}

    def make_state(self, parameters: Sequence[Parameter] | None = None) -> None:
        """Make the state of weights that have none, as the first update does; of all weights if not given."""
        if self.optimizer is None:
            return
        for one in self.parameters if parameters is None else parameters:
            if id(one) not in self._state:
                tensors = self.optimizer.state(one.shape, one.dtype, self.variant)
                if not self._shared and any(".scale" in each.name or "absmax" in each.name for each in tensors):
                    shared = self.optimizer.shared_state(self.variant)
                    self._shared = {each.name: self._made(each, None) for each in shared}
                self._state[id(one)] = {each.name: self._made(each, one) for each in tensors}

    def _made(self, tensor: StateTensor, of: Parameter | None) -> Tensor:
        """A tensor of the state; one of a weight's shape has its layout."""
        tape = active_tape()
        strides = of.strides if of is not None and of.shape == tensor.shape else None
        made = tape.empty(tensor.shape, tensor.dtype, tensor.producer, strides, kind="optimizer")
        if tape.phase == "optimizer" and tensor.producer != "empty_like":
            copied = [of.grad] if of is not None and of.grad is not None and tensor.producer == "clone" else []
            tape.launch(tensor.producer, copied, (made,))
        return made

    def step(self) -> None:
        """Update the weights that have gradients."""
        if self.optimizer is None:
            return
        ready = [one for one in self.parameters if one.grad is not None]
        fresh = {id(one) for one in ready if id(one) not in self._state}
        with active_tape().in_phase("optimizer"):
            self.make_state(ready)
            updated = [
                UpdatedWeight(one, one.grad, {**self._shared, **self._state[id(one)]}, id(one) in fresh)
                for one in ready
                if one.grad is not None
            ]
            self.optimizer.update(updated, self.variant, self.scaling)
