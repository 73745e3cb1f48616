"""Nodes of autograd's graph: a formula, what it saves, and where its gradients go.

Formulas are written as C++ runs them: a temporary of an expression lives until the expression ends, so each one is a
local variable, and of two operands that are computed the right one comes first, as the compiler of PyTorch's wheels
orders them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from buddysim.training.autograd.dtypes import DType
from buddysim.training.autograd.layout import Shape
from buddysim.training.autograd.records import SavedTensor
from buddysim.training.autograd.saved_hooks import PackedTensor, packed, unpacked
from buddysim.training.autograd.tensor import Number, Tensor

if TYPE_CHECKING:
    from buddysim.training.autograd.tape import Tape

Gradients = Sequence[Tensor | None]
Edge = tuple["GraphNode", int]


class GraphNode:
    """One call of an operator that autograd recorded.

    Parameters
    ----------
    operands : of the call, in the order of its gradients; numbers and None have none

    Attributes
    ----------
    name : PyTorch's, ``"MulBackward0"``
    edges : by operand: the node that its gradient goes to, and which of that node's outputs it is of; None where no
        gradient is needed
    sequence : number in the order of the forward pass; the engine runs the highest that is ready
    outputs : shape and type of each output, which a gradient is brought to before the node gets it
    saved : operands and results that the formula reads, until the node has run; packed where the tape has hooks
    noted : what the tape counts as saved by it, until it runs: a node that no loss depends on has saved nothing
    hooks : what is called before the node runs (``Tensor.register_hook`` of its outputs)
    """

    __slots__ = ("edges", "hooks", "noted", "outputs", "saved", "scope", "sequence", "tape")
    name: ClassVar[str] = ""
    #: Whether operands are saved before the operation runs: all but those of `Function`.
    saves_before: ClassVar[bool] = True

    def __init__(self, tape: Tape, operands: Sequence[Tensor | Number | None]) -> None:
        self.tape = tape
        self.edges: list[Edge | None] = [
            one.edge if isinstance(one, Tensor) and one.requires_grad else None for one in operands
        ]
        self.sequence = tape.sequence
        tape.sequence += 1
        self.scope = tape.scope
        self.outputs: list[tuple[Shape, DType]] = []
        self.saved: list[Any] = []
        self.noted: list[SavedTensor] = []
        self.hooks: list[Callable[[], None]] | None = None

    def __del__(self) -> None:
        if self.noted and self.tape.recording:
            for one in self.noted:
                self.tape.saved.remove(one)

    def needs(self, index: int) -> bool:
        """Whether an operand's gradient is needed."""
        return self.edges[index] is not None

    def save(self, name: str, operand: Tensor | Number | None, needed: bool = True) -> None:
        """Append an operand to what is saved: None where it isn't `needed`; a number's memory isn't the GPU's."""
        if needed and isinstance(operand, Tensor):
            self._record(name, operand)
            self.saved.append(packed(self.tape, operand, self.saves_before))
        else:
            self.saved.append(operand if needed else None)

    def save_output(self, name: str, output: Tensor) -> None:
        """Append an output: another tensor on the same storage, as the output itself refers to the node."""
        self._record(name, output)
        is_plain = self.tape.saved_hooks is None
        self.saved.append(output.detach() if is_plain else packed(self.tape, output, False))

    def _record(self, name: str, tensor: Tensor) -> None:
        tape, record = self.tape, tensor.storage.record
        if tape.saved_hooks is not None and not tape.saved_hooks.records:
            return
        if record.kind == "temporary":
            record.kind = "activation"
        self.noted.append(
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
        tape.saved.append(self.noted[-1])

    def call(self, gradients: list[Tensor | None]) -> list[Tensor | None]:
        """Run the node with what it saved unpacked, which lives until it has run."""
        self.noted = []
        if not any(isinstance(one, PackedTensor) for one in self.saved):
            return list(self.run(gradients))
        stored = self.saved
        self.saved = [unpacked(one) for one in stored]
        results = list(self.run(gradients))
        self.saved = stored
        return results

    def release(self) -> None:
        """Drop what was saved."""
        self.saved = []

    def returns(self, tensor: Tensor) -> Tensor:
        """Make a tensor the node's next output."""
        tensor.node, tensor.output, tensor.requires_grad = self, len(self.outputs), True
        self.outputs.append((tensor.shape, tensor.dtype))
        return tensor

    def run(self, gradients: list[Tensor | None]) -> Gradients:
        """Compute the gradients of the operands, of those of the outputs, of which at least one isn't None."""
        gradient = gradients[0]
        assert gradient is not None
        return self.backward(gradient)

    def backward(self, gradient: Tensor) -> Gradients:
        """Compute the gradients of the operands, where one output alone can have a gradient."""
        raise NotImplementedError
