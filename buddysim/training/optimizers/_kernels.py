"""Kernels of updates, as the tape records them."""

from __future__ import annotations

from collections.abc import Sequence

from buddysim.training.autograd.dtypes import DType
from buddysim.training.autograd.tape import active_tape
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.optimizers.optimizer import UpdatedWeight


def in_place(name: str, changed: Sequence[Tensor], *others: Sequence[Tensor]) -> None:
    """Record a kernel that changes tensors and reads others."""
    active_tape().launch(name, [tensor for tensors in (changed, *others) for tensor in tensors], changed)


def computed(name: str, operand: Tensor) -> Tensor:
    """Record an element-wise kernel with a result of its own."""
    result = active_tape().empty(operand.shape, operand.dtype, name, operand.strides)
    active_tape().launch(name, (operand,), (result,))
    return result


def by_format(updated: Sequence[UpdatedWeight]) -> list[list[UpdatedWeight]]:
    """Weights of one format each, which one kernel updates together."""
    groups: dict[DType, list[UpdatedWeight]] = {}
    for one in updated:
        groups.setdefault(one.weight.dtype, []).append(one)
    return list(groups.values())


def state_of(updated: Sequence[UpdatedWeight], name: str) -> list[Tensor]:
    """One tensor of the state of each weight."""
    return [one.state[name] for one in updated]
