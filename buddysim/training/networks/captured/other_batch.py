"""Sizes at another batch than the captured one: on the line, or the square, through those at the batch and at twice it.

What doesn't depend on the batch is equal at both. What is four times as large grows with the square, as the scores of
all samples with each other do.
"""

from __future__ import annotations

from dataclasses import dataclass

from buddysim.formats.operator_graph import OperandTensor


@dataclass(frozen=True)
class OtherBatch:
    """A batch next to the captured one.

    Attributes
    ----------
    captured, batch : samples
    """

    captured: int
    batch: int

    def size(self, captured: int, doubled: int | None) -> int:
        """Return a size, or an extent, at the batch.

        Parameters
        ----------
        doubled : at twice the captured batch; None: the same
        """
        if doubled is None or doubled == captured or self.batch == self.captured:
            return captured
        if doubled == 4 * captured:
            return -(-captured * self.batch**2 // self.captured**2)
        return max(0, captured + -(-(doubled - captured) * (self.batch - self.captured) // self.captured))

    def shape(self, tensor: OperandTensor) -> tuple[int, ...]:
        """Return the shape of a tensor at the batch."""
        doubled = tensor.doubled or tensor.shape
        return tuple(self.size(one, two) for one, two in zip(tensor.shape, doubled, strict=True))
