"""Optimizers as PyTorch runs them on a GPU by default: ``foreach``, kernels over the tensors of one format at a time.

The order of operations and their temporaries are those of ``torch.optim`` 2.13: ``_multi_tensor_sgd`` and
``_multi_tensor_adam``. The step counter of each weight lies on the host.
"""

from __future__ import annotations

from collections.abc import Sequence

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.training.autograd.dtypes import DType
from buddysim.training.autograd.module import Parameter
from buddysim.training.autograd.tape import active_tape
from buddysim.training.autograd.tensor import Tensor

#: States per weight, by name; an optimizer of no name updates nothing.
STATES = {"none": 0, "sgd": 0, "momentum": 1, "adam": 2, "adamw": 2}


class TracedOptimizer:
    """An optimizer with the state that it has after its first step.

    Parameters
    ----------
    name : a name of `STATES`
    parameters : what is updated

    Raises
    ------
    BuddysimError
        an unknown name
    """

    def __init__(self, name: str, parameters: Sequence[Parameter]) -> None:
        if name not in STATES:
            raise BuddysimError(f"optimizer {shortened(name)}: expected one of {', '.join(STATES)}{hint(name, STATES)}")
        self.name = name
        self.parameters = list(parameters)
        self.state = [[_state(one) for one in self.parameters] for _ in range(STATES[name])]

    def step(self) -> None:
        """Update the weights that have gradients, format by format."""
        if self.name == "none":
            return
        groups: dict[DType, list[int]] = {}
        for position, parameter in enumerate(self.parameters):
            if parameter.grad is not None:
                groups.setdefault(parameter.dtype, []).append(position)
        with active_tape().in_phase("optimizer"):
            for members in groups.values():
                weights = [self.parameters[one] for one in members]
                gradients = [one.grad for one in weights if one.grad is not None]
                state = [[values[one] for one in members] for values in self.state]
                if self.name in ("sgd", "momentum"):
                    _sgd(weights, gradients, state)
                else:
                    _adam(weights, gradients, state, decoupled=self.name == "adamw")


def _state(parameter: Parameter) -> Tensor:
    tape = active_tape()
    return tape.empty(parameter.shape, parameter.dtype, "zeros_like", kind="optimizer")


def _sgd(weights: Sequence[Tensor], gradients: Sequence[Tensor], state: Sequence[Sequence[Tensor]]) -> None:
    update = gradients
    for momentum in state:
        _in_place("_foreach_mul_", momentum)
        _in_place("_foreach_add_", momentum, gradients)
        update = momentum
    _in_place("_foreach_add_", weights, update)


def _adam(
    weights: Sequence[Tensor], gradients: Sequence[Tensor], state: Sequence[Sequence[Tensor]], *, decoupled: bool
) -> None:
    """One update; the square roots of the second moment estimates of all weights live at once."""
    averages, squares = state
    if decoupled:
        _in_place("_foreach_mul_", weights)
    _in_place("_foreach_lerp_", averages, gradients)
    _in_place("_foreach_mul_", squares)
    _in_place("_foreach_addcmul_", squares, gradients)
    tape = active_tape()
    roots = [tape.empty(one.shape, one.dtype, "_foreach_sqrt") for one in squares]
    tape.launch("_foreach_sqrt", squares, roots)
    _in_place("_foreach_div_", roots)
    _in_place("_foreach_add_", roots)
    _in_place("_foreach_addcdiv_", weights, averages, roots)


def _in_place(name: str, changed: Sequence[Tensor], *others: Sequence[Tensor]) -> None:
    """Record a kernel that changes tensors and reads others."""
    read = [tensor for tensors in (changed, *others) for tensor in tensors]
    active_tape().launch(name, read, changed)
