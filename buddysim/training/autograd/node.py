"""Nodes of autograd's graph: a formula, what it saves, and where its gradients go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from buddysim.training.autograd.dtypes import DType
from buddysim.training.autograd.layout import Shape
from buddysim.training.autograd.records import SavedTensor

if TYPE_CHECKING:
    from buddysim.training.autograd.tape import Tape
    from buddysim.training.autograd.tensor import Tensor

Gradients = Sequence["Tensor | None"]
Edge = tuple["Node", int]


class Node:
    """One call of an operator that autograd recorded.

    Attributes
    ----------
    name : PyTorch's, ``"MulBackward0"``
    edges : by input: the node that its gradient goes to, and which of that node's outputs it is of; None where no
        gradient is needed
    sequence : number in the order of the forward pass; the engine runs the highest that is ready
    outputs : shape and type of each output, which a gradient is brought to before the node gets it
    saved : tensors, until the node has run
    """

    __slots__ = ("edges", "outputs", "saved", "scope", "sequence", "tape")
    name: ClassVar[str] = ""

    def __init__(self, tape: Tape, inputs: Sequence[Tensor | None]) -> None:
        self.tape = tape
        self.edges: list[Edge | None] = [
            one.edge() if one is not None and one.requires_grad else None for one in inputs
        ]
        self.sequence = tape.sequence
        tape.sequence += 1
        self.scope = tape.scope
        self.outputs: list[tuple[Shape, DType]] = []
        self.saved: list[Tensor] = []

    def needs(self, index: int) -> bool:
        """Whether an input's gradient is needed."""
        return self.edges[index] is not None

    def save(self, name: str, tensor: Tensor, is_output: bool = False) -> None:
        """Save a tensor; of an output, another tensor on the same storage, as the output itself refers to the node."""
        tape, record = self.tape, tensor.storage.record
        if record.kind == "temporary":
            record.kind = "activation"
        tape.saved.append(
            SavedTensor(
                self.name,
                name,
                tensor.shape,
                tensor.strides,
                tensor.dtype,
                record.number,
                tensor.producer,
                tape.scope,
                len(tape.operations) - 1,
            )
        )
        self.saved.append(tensor.detached() if is_output else tensor)

    def returns(self, tensor: Tensor) -> Tensor:
        """Make a tensor the node's next output."""
        tensor.node, tensor.output, tensor.requires_grad = self, len(self.outputs), True
        self.outputs.append((tensor.shape, tensor.dtype))
        return tensor

    def backward(self, gradients: Gradients) -> Gradients:
        """Compute the gradients of the inputs, in their order."""
        raise NotImplementedError

    def release(self) -> None:
        """Drop what was saved."""
        self.saved = []
