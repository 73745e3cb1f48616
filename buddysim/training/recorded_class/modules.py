"""The modules of a class of PyTorch as modules of the tape: the same names and weights, and recorded forward passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from buddysim.training.architectures.blocks.layers import Linear
from buddysim.training.autograd.autocast import autocast_disabled
from buddysim.training.autograd.module import Module, Parameter
from buddysim.training.autograd.tape import active_tape
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.networks.from_torch.step_recorder import dtype_of
from buddysim.training.recorded_class.isolated import Isolation
from buddysim.training.recorded_class.program import (
    CallStep,
    ForwardProgram,
    OperatorStep,
    Slot,
    Weight,
    leaves_of,
    mapped,
)
from buddysim.training.recorded_class.replay import run_operator
from buddysim.training.recorded_class.tracer import OWN_FORWARD


class RecordedModule(Module):
    """A module that runs the programs of its calls.

    Parameters
    ----------
    isolation : runs its operators
    """

    def __init__(self, isolation: Isolation) -> None:
        super().__init__()
        self.isolation = isolation

    def forward(
        self, *args: Any, program: ForwardProgram | None = None, captured: tuple[Tensor, ...] = (), **kwargs: Any
    ) -> Any:
        """Return what the program returns: a tensor, or several."""
        assert program is not None
        values: list[Any] = [None] * program.slots
        tensors = [one for one in leaves_of((args, kwargs)) if isinstance(one, Tensor)]
        for slot, tensor in zip(program.inputs, (*tensors, *captured), strict=True):
            values[slot] = tensor
        tensors.clear()
        tensor = None  # type: ignore[assignment]  # its end is the program's to say
        for step in program.steps:
            results = self._run(step, values)
            for number, result in enumerate(step.results):
                if result is not None:
                    values[result] = results[number]
            del results
            for slot in step.ends:
                values[slot] = None
        returned = [self._value(one, values) for one in program.results]
        return returned[0] if len(returned) == 1 else tuple(returned)

    def _run(self, step: OperatorStep | CallStep, values: list[Any]) -> list[Tensor]:
        def value(reference: Any) -> Tensor:
            return self._value(reference, values)

        args = mapped(step.args, _is_reference, value)
        kwargs = mapped(step.kwargs, _is_reference, value)
        if isinstance(step, OperatorStep):
            return self._operator(step, args, kwargs)
        module = attribute_at(self, step.path)
        if step.program is None:
            result = module(*args, **kwargs)
        else:
            captured = tuple([value(one) for one in step.captured])
            result = module(*args, program=step.program, captured=captured, **kwargs)
        return [one for one in leaves_of(result) if isinstance(one, Tensor)]

    def _operator(self, step: OperatorStep, args: Any, kwargs: Any) -> list[Tensor]:
        tape = active_tape()
        if step.recorded and (step.cast or tape.autocast is None):
            return run_operator(tape, self.isolation, step.operator, args, kwargs)
        before, tape.grad_enabled = tape.grad_enabled, tape.grad_enabled and step.recorded
        try:
            if step.cast:
                return run_operator(tape, self.isolation, step.operator, args, kwargs)
            with autocast_disabled():
                return run_operator(tape, self.isolation, step.operator, args, kwargs)
        finally:
            tape.grad_enabled = before

    def _value(self, reference: Slot | Weight, values: list[Any]) -> Tensor:
        value: Tensor = values[reference.number] if isinstance(reference, Slot) else attribute_at(self, reference.path)
        return value


def _is_reference(value: Any) -> bool:
    return isinstance(value, Slot | Weight)


def attribute_at(module: Module, path: str) -> Any:
    """Return the module or weight that a path leads to."""
    value: Any = module
    for part in path.split("."):
        value = value[int(part)] if isinstance(value, list) else getattr(value, part)
    return value


class Mirror:
    """Makes modules and weights of those of PyTorch, each once.

    Parameters
    ----------
    trained : weights that need gradients, by identity
    """

    def __init__(self, isolation: Isolation, trained: frozenset[int]) -> None:
        self.isolation, self.trained = isolation, trained
        self._made: dict[int, Any] = {}

    def fill(self, module: Module, source: torch.nn.Module) -> None:
        """Give a module the weights and modules of one of PyTorch's."""
        for name, weight in source._parameters.items():
            setattr(module, name, None if weight is None else self._once(weight, self._parameter))
        for name, buffer in source._buffers.items():
            setattr(module, name, None if buffer is None else self._once(buffer, _buffer))
        for name, child in source._modules.items():
            setattr(module, name, None if child is None else self._once(child, self._module))

    def _once(self, source: Any, make: Callable[[Any], Any]) -> Any:
        if id(source) not in self._made:
            self._made[id(source)] = make(source)
        return self._made[id(source)]

    def _module(self, source: torch.nn.Module) -> Module | list[Any]:
        if type(source) is torch.nn.ModuleList:
            return [self._once(one, self._module) for one in source]
        if isinstance(source, torch.nn.Linear) and type(source) in OWN_FORWARD:
            weight = self._once(source.weight, self._parameter)
            bias = source.bias is not None and self._once(source.bias, self._parameter)
            return Linear(source.in_features, source.out_features, bias=bias, weight=weight)
        module = RecordedModule(self.isolation)
        self.fill(module, source)
        return module

    def _parameter(self, weight: torch.nn.Parameter) -> Parameter:
        return Parameter(tuple(weight.shape), dtype_of(weight), id(weight) in self.trained)


def _buffer(buffer: torch.Tensor) -> Tensor:
    return active_tape().buffer(tuple(buffer.shape), dtype_of(buffer))
