"""A recorded layer: consecutive forward operations of one module, with the backward operations that belong to them."""

from __future__ import annotations

from dataclasses import dataclass

from buddysim.training.networks.graph import Layer
from buddysim.training.networks.recorded.work import OperationWork

KIND = "operations"


@dataclass(frozen=True)
class RecordedLayer(Layer):
    """A layer of one batch; its numbers are those of the whole batch.

    Attributes
    ----------
    output_bytes : of what later layers read
    weight_bytes : of its parameters
    outputs : operator that made what later layers read, and its bytes
    saved_inputs : layers whose outputs it saves for the backward pass
    saved_weight_bytes : of the parameters and buffers that it saves
    has_gradient : whether the backward pass computes a gradient of its output
    forward_temporary_bytes, backward_temporary_bytes : peak of what lives during one of its passes alone
    forward_work, backward_work : of its operations
    """

    output_bytes: int = 0
    outputs: tuple[tuple[str, int], ...] = ()
    weight_bytes: int = 0
    saved_inputs: tuple[int, ...] = ()
    saved_weight_bytes: int = 0
    has_gradient: bool = True
    forward_temporary_bytes: int = 0
    backward_temporary_bytes: int = 0
    forward_work: tuple[OperationWork, ...] = ()
    backward_work: tuple[OperationWork, ...] = ()

    __hash__ = Layer.__hash__

    def temporary_bytes(self, pass_: str) -> int:
        """Peak of what lives during a pass alone, in bytes."""
        return self.backward_temporary_bytes if pass_ == "backward" else self.forward_temporary_bytes

    def work(self, pass_: str) -> tuple[OperationWork, ...]:
        """Work of a pass; that of the backward pass is not divided."""
        if pass_ == "backward_filter":
            return ()
        return self.forward_work if pass_ == "forward" else self.backward_work
