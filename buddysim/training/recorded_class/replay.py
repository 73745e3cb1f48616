"""Runs operators on a tape as they ran by themselves, with nodes whose formulas do what PyTorch's do."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import torch

from buddysim.training.autograd.dtypes import uint8
from buddysim.training.autograd.node import Gradients, GraphNode
from buddysim.training.autograd.records import Operand
from buddysim.training.autograd.tape import Tape
from buddysim.training.autograd.tensor import Tensor, TensorStorage
from buddysim.training.networks.from_torch.cuda_rules.published_list import cuda_autocast_list
from buddysim.training.recorded_class.forms import (
    Allocated,
    AutogradNode,
    Call,
    Event,
    Form,
    Freed,
    InView,
    Launched,
    Part,
    Result,
    Saved,
    changes_arguments,
)
from buddysim.training.recorded_class.isolated import Isolation
from buddysim.training.recorded_class.program import leaves_of, mapped

if TYPE_CHECKING:
    from collections.abc import Callable

Storages = dict[int, TensorStorage]


def run_operator(tape: Tape, isolation: Isolation, operator: Any, args: Any, kwargs: Any) -> list[Tensor]:
    """Run an operator of PyTorch on tensors of a tape, and return the tensors that it returns."""
    autocast = None if tape.autocast is None else getattr(torch, tape.autocast.dtype.name)
    if tape.autocast is not None and _lowers(operator):
        args, kwargs = mapped((args, kwargs), _is_tensor, lambda one: _lowered(tape, one))
    if _changes(operator) and isinstance(args[0], Tensor) and args[0].base is not None:
        written, base = args[0], args[0].base
        if any(one.records for one in (base, *leaves_of((args, kwargs))) if isinstance(one, Tensor)):
            operator = InView(operator, written.shape, written.strides, written.offset - base.offset)
            args = (base, *args[1:])
    arguments: list[Tensor] = []
    numbers: dict[int, int] = {}

    def form_of(tensor: Tensor) -> Form:
        number = numbers.setdefault(id(tensor), len(arguments))
        if number == len(arguments):
            arguments.append(tensor)
        return Form(tensor.shape, tensor.strides, tensor.dtype, tensor.records, number)

    args, kwargs = mapped((args, kwargs), _is_tensor, form_of)
    call = isolation.call(operator, args, kwargs, autocast)
    return _Replay(tape, isolation, call, arguments).run()


_changes = cache(changes_arguments)


@cache
def _lowers(operator: Any) -> bool:
    name, _, overload = operator.name().removeprefix("aten::").partition(".")
    return cuda_autocast_list().get(f"{name}.{overload}" if overload else name) == "lower_precision"


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor)


def _lowered(tape: Tape, tensor: Tensor) -> Tensor:
    """A weight cast once for the whole forward pass; other tensors are cast within the operator."""
    return tape.lower(tensor) if tensor.requires_grad and tensor.node is None and not tensor.is_view else tensor


class _Replay:
    """A call of an operator on a tape."""

    def __init__(self, tape: Tape, isolation: Isolation, call: Call, arguments: Sequence[Tensor]) -> None:
        self.tape, self.isolation, self.call, self.arguments = tape, isolation, call, arguments
        self.storages: Storages = {number: one.storage for number, one in zip(call.arguments, arguments, strict=True)}
        self.offsets = {number: one.offset for number, one in zip(call.arguments, arguments, strict=True)}
        self.nodes: list[ReplayedNode] = []
        #: An argument that is also a result has the node that saves it.
        self.changed = [any(one.argument == number for one in call.results) for number in range(len(arguments))]

    def run(self) -> list[Tensor]:
        happen(self.tape, self.storages, self.call.events, self._saved)
        self.tape.views += self.call.views
        self._nodes_until(len(self.call.nodes))
        return [self._result(one) for one in self.call.results]

    def _nodes_until(self, count: int) -> None:
        while len(self.nodes) < count:
            node = self.call.nodes[len(self.nodes)]
            edges = [
                None if one is None else self.arguments[one[1]].edge if one[0] else (self.nodes[one[1]], one[2])
                for one in node.edges
            ]
            self.nodes.append(_type_of(node.name)(self.tape, edges, node, self.call, self.isolation))

    def _saved(self, event: Saved) -> None:
        self._nodes_until(event.node + 1)
        node = self.nodes[event.node]
        if event.argument is not None and not self.changed[event.argument]:
            node.save(event.name, self.arguments[event.argument])
        else:
            node.save_output(event.name, self._tensor(event.part))

    def _tensor(self, part: Part) -> Tensor:
        return tensor_of(self.tape, self.storages, part, self.offsets.get(part.storage, 0))

    def _result(self, result: Result) -> Tensor:
        tensor: Tensor
        if result.argument is not None:
            tensor = self.arguments[result.argument]
            if result.part.producer != "input":
                tensor.producer = result.part.producer
        else:
            tensor = self._tensor(result.part)
            if tensor.is_view and result.part.storage in self.call.arguments:
                viewed = self.arguments[self.call.arguments.index(result.part.storage)]
                tensor.base = viewed if viewed.base is None else viewed.base
        if result.node is not None:
            tensor.node, tensor.output, tensor.requires_grad = self.nodes[result.node], result.output, True
        return tensor


def happen(tape: Tape, storages: Storages, events: Sequence[Event], save: Callable[[Saved], None] | None) -> None:
    """Record what an operator does."""
    for event in events:
        kind = type(event)
        if kind is Launched:
            operation = event.operation  # type: ignore[union-attr]
            tape.views += operation.views
            flops = operation.flops - sum([one.flops for one in operation.products])
            reads = [_operand(storages, one) for one in operation.reads]
            writes = [_operand(storages, one) for one in operation.writes]
            tape.launch(operation.name, reads, writes, operation.products, flops)
            del reads, writes
        elif kind is Allocated:
            made = tape.empty((event.bytes,), uint8, event.producer)  # type: ignore[union-attr]
            storages[event.storage] = made.storage  # type: ignore[union-attr]
            del made
        elif kind is Freed:
            storages.pop(event.storage, None)  # type: ignore[union-attr]
        elif save is not None:
            save(event)  # type: ignore[arg-type]


def tensor_of(tape: Tape, storages: Storages, part: Part, offset: int = 0) -> Tensor:
    """Return a tensor on storages of a call."""
    if 0 in part.shape:
        return tape.empty(part.shape, part.dtype, part.producer)
    tensor = Tensor(part.shape, part.strides, part.offset + offset, part.dtype, storages[part.storage], part.producer)
    tensor.is_view = part.is_view
    return tensor


def _operand(storages: Storages, operand: Operand) -> Tensor:
    storage = storages[operand.storage]
    return Tensor(operand.shape, operand.strides, 0, operand.dtype, storage, storage.record.producer)


class ReplayedNode(GraphNode):
    """A node whose formula does what PyTorch's does."""

    __slots__ = ("call_", "isolation", "node")

    def __init__(self, tape: Tape, edges: list[Any], node: AutogradNode, call: Call, isolation: Isolation) -> None:
        super().__init__(tape, ())
        self.edges, self.node, self.call_, self.isolation = edges, node, call, isolation
        self.outputs = list(node.outputs)

    def run(self, gradients: list[Tensor | None]) -> Gradients:
        """Compute the gradients of the operands."""
        forms = [
            None if one is None else Form(one.shape, one.strides, one.dtype, False, number)
            for number, one in enumerate(gradients)
        ]
        run = self.isolation.formula(self.call_, self.node, forms)
        storages: Storages = {
            number: one.storage for number, one in zip(self.node.saved, self.saved, strict=True) if one is not None
        }
        offsets = {number: one.offset for number, one in zip(self.node.saved, self.saved, strict=True)}
        for number, one in enumerate(gradients):
            if one is not None:
                storages[-1 - number], offsets[-1 - number] = one.storage, one.offset
        happen(self.tape, storages, run.events, None)
        self.tape.views += run.views
        return [
            None
            if one is None
            else gradients[one]
            if isinstance(one, int)
            else tensor_of(self.tape, storages, one, offsets.get(one.storage, 0))
            for one in run.results
        ]


@cache
def _type_of(name: str) -> type[ReplayedNode]:
    return type(name, (ReplayedNode,), {"name": name, "__slots__": ()})
