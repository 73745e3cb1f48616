"""Operators of PyTorch run by themselves, without data: what each allocates, launches, saves, and its formulas.

An operator is run once for each kind of arguments, by the rules of a GPU; PyTorch's own autograd says which nodes it
makes, and each node's formula is run once for each kind of gradients.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.training.autograd.records import Operand
from buddysim.training.autograd.tape import Tape
from buddysim.training.networks.from_torch.below_autograd import below_autograd
from buddysim.training.networks.from_torch.cuda_rules import Attention, cuda_rules
from buddysim.training.networks.from_torch.cuda_rules.signatures import SIGNATURES
from buddysim.training.networks.from_torch.traced_step import quiet
from buddysim.training.networks.from_torch.untouched_memory import UntouchedMemory
from buddysim.training.networks.from_torch.without_data import WithoutData, tensors_in
from buddysim.training.recorded_class.autograd_nodes import AutogradNodes
from buddysim.training.recorded_class.call_recorder import CallRecorder
from buddysim.training.recorded_class.forms import (
    Allocated,
    AutogradNode,
    Call,
    Form,
    FormulaEffects,
    Freed,
    InView,
    Launched,
    Part,
    Result,
    Saved,
    changes_arguments,
)
from buddysim.training.recorded_class.program import leaves_of, mapped


class Isolation:
    """Runs operators by themselves, within `active`.

    Parameters
    ----------
    attention : which of PyTorch's fused kernels attention may take
    """

    def __init__(self, memory: UntouchedMemory, attention: Attention) -> None:
        self.memory, self.attention = memory, attention
        self._calls: dict[Hashable, Call] = {}
        self._is_active = False

    @contextmanager
    def active(self) -> Iterator[None]:
        """Context in which operators can be run; within another one, it does nothing."""
        if self._is_active:
            yield
            return
        with ExitStack() as stack:
            stack.enter_context(quiet())
            stack.enter_context(cuda_rules(self.attention, kernels=False))
            stack.enter_context(below_autograd(WithoutData(self.memory, SIGNATURES)))
            self._is_active = True
            try:
                yield
            finally:
                self._is_active = False

    def call(self, operator: Any, args: Any, kwargs: Any, autocast: torch.dtype | None) -> Call:
        """Return what an operator does with arguments that have forms instead of tensors."""
        key = operator, _hashable(args), _hashable(kwargs), autocast
        call = self._calls.get(key)
        if call is None:
            try:
                call = self._calls[key] = self._run(operator, args, kwargs, autocast)
            except (BuddysimError, MemoryError):
                raise
            except Exception as error:  # PyTorch's operator refuses its arguments with what it likes
                reason = shortened(" ".join(str(error).split()), 200)[1:-1] or type(error).__name__
                raise BuddysimError(f"{operator.name()} can't be run by itself: {reason}") from None
        return call

    def formula(self, call: Call, node: AutogradNode, gradients: Sequence[Form | None]) -> FormulaEffects:
        """Return what a node does with gradients of these forms."""
        key = tuple(gradients)
        run = node.formulas.get(key)
        if run is None:
            run = node.formulas[key] = self._backward(call, node, gradients)
        return run

    def _run(self, operator: Any, args: Any, kwargs: Any, autocast: torch.dtype | None) -> Call:
        recorder, within = CallRecorder(Tape(), self.memory), operator if isinstance(operator, InView) else None
        operator = operator if within is None else within.operator
        forms: dict[int, Form] = {one.number: one for one in leaves_of((args, kwargs)) if isinstance(one, Form)}
        in_place = changes_arguments(operator)
        made = {number: recorder.argument(form, in_place=in_place) for number, form in forms.items()}
        arguments = [made[number] for number in range(len(made))]
        positional, keywords = mapped((args, kwargs), lambda one: isinstance(one, Form), lambda one: made[one.number])
        if within is not None:
            positional = (positional[0].as_strided(*within[1:]), *positional[1:])
        roots, begin = [one.grad_fn for one in arguments], len(recorder.tape.events)
        with ExitStack() as stack:
            stack.enter_context(below_autograd(recorder))
            stack.enter_context(torch.autograd.graph.saved_tensors_hooks(recorder.pack, recorder.unpack))
            stack.enter_context(torch.autocast("cpu", autocast, enabled=autocast is not None))
            if not any(form.needs_gradient for form in forms.values()):
                stack.enter_context(torch.no_grad())
            returned = list(tensors_in(operator(*positional, **keywords)))
        del positional, keywords
        end = len(recorder.tape.events)
        own = {id(one): number for number, one in enumerate(arguments)}
        returned += arguments[:1] if within is not None else []
        graph = AutogradNodes(arguments, roots, [one.grad_fn for one in returned])
        results = [
            Result(
                recorder.part(one),
                own.get(id(one)),
                graph.numbers.get(one.grad_fn),
                one.output_nr,
            )
            for one in returned
        ]
        events = recorder.events(begin, end)
        for number, name, packed in reversed(graph.saved()):
            if packed.record is not None:
                same = (own[id(one)] for one in arguments if _is_same(packed.tensor, one))
                argument = next(same, None) if packed.record.producer == "input" else None
                position = recorder.position(packed, graph.ordered[number]) - begin
                part = recorder.part(packed.tensor, packed.record.producer)
                events.insert(position, Saved(number, name, part, argument))
        nodes = graph.nodes()
        for event in events:
            if isinstance(event, Saved):
                nodes[event.node].saved.append(event.part.storage)
        views, recorder.tape.views = recorder.tape.views, 0
        return Call(recorder, [recorder.number(one) for one in arguments], events, views, results, nodes)

    def _backward(self, call: Call, node: AutogradNode, gradients: Sequence[Form | None]) -> FormulaEffects:
        recorder = call.recorder
        recorder.resume()
        made = [None if one is None else recorder.argument(one, in_place=False) for one in gradients]
        numbers = {recorder.number(one): number for number, one in enumerate(made) if one is not None}
        begin = len(recorder.tape.events)
        with torch.no_grad(), below_autograd(recorder):
            returned = (node.function.apply if hasattr(node.function, "apply") else node.function)(*made)
        returned = returned if isinstance(returned, tuple) else (returned,)
        end = len(recorder.tape.events)
        own = {id(one): number for number, one in enumerate(made) if one is not None}
        results: list[Part | int | None] = [
            None if one is None else own[id(one)] if id(one) in own else recorder.part(one) for one in returned
        ]
        events, views = recorder.events(begin, end), recorder.tape.views
        recorder.tape.views = 0
        # Gradients' storages are numbered from -1 down, whichever run this is.
        renumbered = {storage: -1 - number for storage, number in numbers.items()}
        return FormulaEffects(
            [_moved(one, renumbered) for one in events], views, [_moved(one, renumbered) for one in results]
        )


def _is_same(tensor: torch.Tensor, argument: torch.Tensor) -> bool:
    """Whether a saved tensor is an argument, or has all of its elements."""
    return (
        tensor.numel() > 0
        and tensor.data_ptr() == argument.data_ptr()
        and (tensor.shape, tensor.stride(), tensor.dtype) == (argument.shape, argument.stride(), argument.dtype)
    )


def _moved(value: Any, renumbered: dict[int, int]) -> Any:
    """An event or a tensor with other numbers of storages."""
    if isinstance(value, Part | Allocated | Freed):
        return value._replace(storage=renumbered.get(value.storage, value.storage))
    if isinstance(value, Launched):
        operation = value.operation
        operation.reads = tuple(_operand(one, renumbered) for one in operation.reads)
        operation.writes = tuple(_operand(one, renumbered) for one in operation.writes)
    return value


def _operand(operand: Operand, renumbered: dict[int, int]) -> Operand:
    return operand._replace(storage=renumbered.get(operand.storage, operand.storage))


def _hashable(value: Any) -> Hashable:
    if isinstance(value, Form):
        return value
    if isinstance(value, tuple | list):
        return tuple([_hashable(one) for one in value])
    if isinstance(value, dict):
        return tuple((name, _hashable(one)) for name, one in value.items())
    if isinstance(value, torch.Tensor):
        return "host", value.dtype, value.item() if value.numel() == 1 else id(value)
    return type(value), value
