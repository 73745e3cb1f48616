"""Operators whose forward and backward passes a model writes itself (``torch.autograd.Function``)."""

from __future__ import annotations

from typing import Any, ClassVar

from buddysim.training.autograd.node import GraphNode
from buddysim.training.autograd.tape import active_tape
from buddysim.training.autograd.tensor import Tensor


class Function(GraphNode):
    """A node whose result is that of `compute`, and whose gradients are those of `backward`.

    A subclass defines both; the gradients are of the tensors among the arguments, in their order. Neither is recorded:
    what `compute` allocates dies with its local variables, unless it is the result or handed to `save_for_backward`.
    """

    __slots__ = ("pending",)
    pending: tuple[Tensor, ...]
    name: ClassVar[str] = ""
    saves_before: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.name = f"{cls.__name__}Backward"

    def compute(self, *arguments: Any) -> Tensor:
        """Return the result."""
        raise NotImplementedError

    def save_for_backward(self, *tensors: Tensor) -> None:
        """Keep tensors until the node has run."""
        self.pending = tensors

    @classmethod
    def apply(cls, *arguments: Any) -> Tensor:
        """Run the operator on its arguments, tensors and others."""
        tape = active_tape()
        inputs = [one for one in arguments if isinstance(one, Tensor)]
        node = cls(tape, inputs)
        node.pending = ()
        is_recorded = any(one.records for one in inputs)
        with tape.no_grad():
            result = node.compute(*arguments)
        pending: tuple[Tensor, ...] = node.pending
        node.pending = ()
        if not is_recorded:
            return result
        node.returns(result)
        for tensor in pending:
            if tensor is result:
                node.save_output("tensors", tensor)
            else:
                node.save("tensors", tensor)
        return result
