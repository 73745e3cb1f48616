"""An optimizer: the state of each weight, and the kernels and temporaries of an update."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar, NamedTuple

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.training.autograd.dtypes import DType, float32
from buddysim.training.autograd.layout import Shape
from buddysim.training.autograd.tensor import Tensor

SECOND = 10**12  # picoseconds


class StateTensor(NamedTuple):
    """A tensor that an optimizer has for a weight.

    Attributes
    ----------
    producer : operator that makes it in the first update
    """

    name: str
    shape: Shape
    dtype: DType
    producer: str = "zeros_like"

    @property
    def bytes(self) -> int:
        return prod(self.shape) * self.dtype.size


@dataclass(frozen=True, eq=False)
class UpdatedWeight:
    """A weight with what its update reads.

    Attributes
    ----------
    state : tensors by their names
    fresh : whether this is its first update
    """

    weight: Tensor
    gradient: Tensor
    state: Mapping[str, Tensor]
    fresh: bool


class Scaling(NamedTuple):
    """What a gradient scaler hands to kernels that undo the scaling: its scale, and whether gradients are infinite."""

    scale: Tensor
    found_infinite: Tensor


class Optimizer:
    """A rule of updates.

    Parameters
    ----------
    name, summary : for lists

    Attributes
    ----------
    VARIANTS : implementations, the one that PyTorch takes on a GPU by itself first
    """

    VARIANTS: ClassVar[tuple[str, ...]] = ("foreach", "fused", "for-loop")

    def __init__(self, name: str, summary: str) -> None:
        self.name, self.summary = name, summary

    def state(self, shape: Shape, dtype: DType, variant: str) -> Sequence[StateTensor]:
        """Return the state of a weight."""
        raise NotImplementedError

    def shared_state(self, variant: str) -> Sequence[StateTensor]:
        """Return the state that all weights share."""
        return ()

    def update(self, updated: Sequence[UpdatedWeight], variant: str, scaling: Scaling | None) -> None:
        """Record an update on the active tape.

        Parameters
        ----------
        scaling : to be undone by the kernels themselves; only given to variants that do (`undoes_scaling`)
        """
        raise NotImplementedError

    def undoes_scaling(self, variant: str) -> bool:
        """Whether the kernels divide gradients by a scaler's scale (``_step_supports_amp_scaling``)."""
        return variant == "fused"

    def find_variant(self, name: str | None) -> str:
        """Return an implementation by its name; the first one if None.

        Raises
        ------
        BuddysimError
            one that the optimizer doesn't have
        """
        if name is None:
            return self.VARIANTS[0]
        if name not in self.VARIANTS:
            raise BuddysimError(
                f"optimizer_variant {shortened(name)}: expected one of {', '.join(self.VARIANTS)}, those of {self.name}"
                f"{hint(name, self.VARIANTS)}"
            )
        return name

    def state_bytes(self, parameters: int) -> int:
        """Return the bytes of state for a number of weights in single precision."""
        return sum(one.bytes for one in self.state((parameters,), float32, self.VARIANTS[0]) if parameters)

    def moved_bytes(self, parameters: int) -> int:
        """Return the bytes that an update moves: each weight twice, its gradient, all state twice."""
        return 3 * parameters * float32.size + 2 * self.state_bytes(parameters)

    def update_ps(self, parameters: int, bytes_per_s: float) -> int:
        """Return the time of an update of a number of weights in single precision.

        It is that of the bytes that one kernel per layer moves. Launches are not counted, since PyTorch's ``foreach``
        and ``fused`` update many layers with one.
        """
        return round(self.moved_bytes(parameters) * SECOND / bytes_per_s)
